"""One request of an HTTP/2 connection, as ASGI sees it."""

import asyncio
import logging
from collections import deque
from typing import Any, Final, Protocol, cast

from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from uvicorn.protocols.http.flow_control import service_unavailable

from core_broker.service.web.asgi import Application, Message

log = logging.getLogger(__name__)

_OF_A_CONNECTION: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"})
"""Headers that HTTP/2 does not have."""
_REST_SECONDS: Final = 1.0
"""How long the rest of a request may take to come after its response."""


class Connection(Protocol):
    """What a request needs of its connection."""

    h2: H2Connection
    transport: asyncio.Transport
    writable: asyncio.Event
    """Set while the system takes more bytes."""
    stall_seconds: float

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of every response."""
        ...

    def flush(self) -> None:
        """Send what is to be sent."""
        ...

    def end(self, stream: "Http2Stream") -> None:
        """Forget a request that is over on both sides."""
        ...


class Http2Stream:
    """A request and its response, which may go on at the same time."""

    def __init__(self, connection: Connection, id: int, scope: dict[str, Any], *, has_body: bool) -> None:  # noqa: A002
        self._connection = connection
        self.id = id
        self.window = asyncio.Event()
        """Set when the client may have room for more."""
        self._scope = scope
        self._body: deque[tuple[bytes, int]] = deque()
        self._is_body_complete = not has_body
        self._is_body_read = False
        self._has_news = asyncio.Event()
        self._is_gone = False
        self._is_started = False
        self._is_answered = False
        self._expects = any(name == b"expect" for name, _ in scope["headers"])

    async def run(self, app: Any) -> None:
        """Let the app answer; without one there is no room for the request."""
        served: Application = app or cast("Application", service_unavailable)
        try:
            await served(self._scope, self._receive, self._send)
            if not self._is_answered and not self._is_gone:
                log.error("a request was not answered to its end", extra={"path": self._scope["path"]})
        except asyncio.CancelledError:
            raise
        except Exception:
            if not self._is_gone:
                log.exception("a request failed", extra={"path": self._scope["path"]})
        finally:
            self._finish()

    # --- what the client sends ---

    @property
    def takes_body(self) -> bool:
        """Whether the app may still read."""
        return not (self._is_answered or self._is_gone)

    def add_body(self, data: bytes, size: int) -> None:
        """A part of the body has come; `size` is what it has taken of the window."""
        self._body.append((data, size))
        self._has_news.set()

    def end_body(self) -> None:
        """The body is complete."""
        self._is_body_complete = True
        self._has_news.set()

    def disconnect(self) -> None:
        """The client has given the request up, or the connection is lost."""
        self._is_gone = True
        self._has_news.set()
        self.window.set()

    # --- ASGI ---

    async def _receive(self) -> Message:
        if self._expects and not self._is_started and not self._is_gone:
            self._expects = False
            self._connection.h2.send_headers(self.id, [(b":status", b"100")])
            self._connection.flush()
        while not (self._body or self._is_body_complete or self._is_gone):
            self._has_news.clear()
            await self._has_news.wait()
        if self._is_body_read:
            await self._gone()
        if self._is_gone or self._is_answered:
            return {"type": "http.disconnect"}
        data, size = self._body.popleft() if self._body else (b"", 0)
        if size:
            self._connection.h2.acknowledge_received_data(size, self.id)
            self._connection.flush()
        more = bool(self._body) or not self._is_body_complete
        self._is_body_read = not more
        return {"type": "http.request", "body": data, "more_body": more}

    async def _gone(self) -> None:
        """Wait until no request is left to answer."""
        while not (self._is_gone or self._is_answered):
            self._has_news.clear()
            await self._has_news.wait()

    async def _send(self, message: Message) -> None:
        if self._is_gone:
            return
        if message["type"] == "http.response.start":
            self._send_head(message)
        elif message["type"] == "http.response.body":
            is_head = self._scope["method"] == "HEAD"
            await self._send_body(b"" if is_head else message.get("body", b""), more=message.get("more_body", False))

    def _send_head(self, message: Message) -> None:
        self._is_started = True
        headers = [(b":status", b"%d" % message["status"]), *self._connection.default_headers]
        headers += [
            (name.lower(), value) for name, value in message.get("headers", ()) if name.lower() not in _OF_A_CONNECTION
        ]
        self._connection.h2.send_headers(self.id, headers)
        self._connection.flush()

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        h2, rest = self._connection.h2, memoryview(body)
        while rest:
            room = await self._room()
            if self._is_gone:
                return
            part, rest = rest[:room], rest[room:]
            h2.send_data(self.id, bytes(part), end_stream=not more and not rest)
            self._connection.flush()
        if more:
            return
        if not body:
            h2.end_stream(self.id)
        self._is_answered = True
        self._connection.flush()
        self._has_news.set()

    async def _room(self) -> int:
        """How much may be sent, once something may; the client has to make room in time."""
        h2 = self._connection.h2
        await self._connection.writable.wait()
        while not self._is_gone:
            if room := min(h2.local_flow_control_window(self.id), h2.max_outbound_frame_size):
                return room
            self.window.clear()
            try:
                async with asyncio.timeout(self._connection.stall_seconds):
                    await self.window.wait()
            except TimeoutError:
                self._reset(ErrorCodes.CANCEL)
        return 0

    def _finish(self) -> None:
        if not (self._is_answered or self._is_gone):
            self._reset(ErrorCodes.INTERNAL_ERROR)
        unread = sum(size for _, size in self._body)
        self._body.clear()
        if unread and not self._connection.transport.is_closing():
            self._connection.h2.acknowledge_received_data(unread, self.id)
            self._connection.flush()
        if self._is_answered and not self._is_body_complete:
            # Its rest may be on the way already; a reset would look like a failure to some clients.
            asyncio.get_running_loop().call_later(_REST_SECONDS, self._reset, ErrorCodes.NO_ERROR)
        self._connection.end(self)

    def _reset(self, code: ErrorCodes) -> None:
        self._is_gone = True
        self._has_news.set()
        try:
            self._connection.h2.reset_stream(self.id, error_code=code)
        except ProtocolError:
            return  # it is closed already
        self._connection.flush()
