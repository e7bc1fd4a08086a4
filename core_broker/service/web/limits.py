"""How much of a request is read, how long it is waited for, and how many are in work."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from typing_extensions import override

from core_broker.service.web.asgi import Application, Message, Receive, Scope, Send
from core_broker.service.web.errors import envelope
from core_broker.service.web.settings import WebSettings

_MAX_VALUES = 20_000
_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class BoundedRoute(APIRoute):
    """A route whose bodies hold a bounded number of values: the event loop checks them, and everybody waits for it."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def handle_bounded(request: Request) -> Response:
            return await handle(_BoundedRequest(request.scope, request.receive))

        return handle_bounded


class _BoundedRequest(Request):
    @override
    async def json(self) -> Any:
        encoding = self.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise HTTPException(415, f"Bodies are read as they are, not with the content-encoding {encoding}")
        try:
            content = await self.body()
            text = content.decode(json.detect_encoding(content))
            _check_values(text)
            document = json.loads(text)
            if "\\u" in text:
                json.dumps(document, ensure_ascii=False).encode()
        except UnicodeDecodeError:
            raise HTTPException(400, "The body is not valid JSON: it is no text in UTF-8") from None
        except UnicodeEncodeError:
            raise HTTPException(400, "The body is not valid JSON: half of a surrogate pair is no text") from None
        except RecursionError:
            raise HTTPException(400, "The body is not valid JSON: it nests too deep") from None
        return document


def _check_values(text: str) -> None:
    """Refuse too many values before they are read: making a million empty lists takes more than a second."""
    if _structure(text) > _MAX_VALUES and _structure(_STRINGS.sub("", text)) > _MAX_VALUES:
        raise HTTPException(413, f"The body has more than {_MAX_VALUES} values")


def _structure(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


class BodyLimits:
    """Refuses bodies that are too long, and clients that stop sending in the middle of one.

    `is_unbounded` names requests whose bodies are left alone: whoever reads them bounds them.
    """

    def __init__(
        self, app: Application, settings: WebSettings, *, is_unbounded: Callable[[Scope], bool] = lambda _: False
    ) -> None:
        self._app = app
        self._is_unbounded = is_unbounded
        self.max_bytes = settings.request_max_bytes
        self.max_bytes_together = settings.requests_max_bytes
        self.timeout = settings.request_read_timeout_ms / 1000
        self.bytes = 0
        """Of bodies that requests in work have brought so far."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or self._is_unbounded(scope):
            await self._app(scope, receive, send)
            return
        if _content_length(scope["headers"]) > self.max_bytes:
            await self._refusal(scope["headers"])(scope, receive, send)
            return
        body = _Body(self, receive)
        try:
            await self._app(scope, body.receive, send)
        finally:
            self.bytes -= body.bytes

    @property
    def too_long(self) -> str:
        """Why a body is refused."""
        return f"The body is longer than {self.max_bytes} bytes (request.max.bytes)"

    def _refusal(self, headers: Sequence[tuple[bytes, bytes]]) -> Response:
        response = envelope(413, 413, self.too_long)
        # The rest of the body is passed over; a client that waited for our leave does not send it.
        if any(name == b"expect" for name, _ in headers):
            response.headers["connection"] = "close"
        return response


class _Body:
    """One body that is received."""

    __slots__ = ("_limits", "_receive", "bytes")

    def __init__(self, limits: BodyLimits, receive: Receive) -> None:
        self._limits, self._receive = limits, receive
        self.bytes = 0

    async def receive(self) -> Message:
        limits = self._limits
        try:
            async with asyncio.timeout(limits.timeout):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"No more of the body came within {limits.timeout:g} s") from None
        size = len(message.get("body", b""))
        self.bytes += size
        limits.bytes += size
        if self.bytes > limits.max_bytes:
            raise HTTPException(413, limits.too_long)
        # Whoever is alone may always go on.
        if self.bytes < limits.bytes > limits.max_bytes_together:
            most = f"{limits.max_bytes_together} bytes (requests.max.bytes)"
            raise HTTPException(429, f"The bodies of all requests are longer than {most}", headers={"Retry-After": "1"})
        return message


class SendersQueue:
    """Lets requests that send something take most of the worker threads, never all of them.

    What they send can take long to check. Who only asks must not wait for it: some threads are always left.
    """

    def __init__(self, app: Application, settings: WebSettings) -> None:
        self._app = app
        self._turns = asyncio.Semaphore(max(1, settings.worker_threads * 3 // 4))
        self._timeout = settings.request_queue_timeout_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._timeout):
                await self._turns.acquire()
        except TimeoutError:
            busy = f"Others were served for {self._timeout:g} s (request.queue.timeout.ms); try again later"
            await envelope(503, 503, busy)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._turns.release()


def _content_length(headers: Sequence[tuple[bytes, bytes]]) -> int:
    value = next((value for name, value in headers if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0
