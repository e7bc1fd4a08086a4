"""HTTP/2 for an ASGI server: a connection with many requests at once, in both directions, all of it bounded.

What a request has not read is at most its flow-control window; what a client has not read waits in the application,
which `send` holds up.
"""

import asyncio
import logging
from typing import Any, Final
from urllib.parse import unquote

import h2.errors
import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from core_broker.service.web.connections import HttpConnection, attach_connection
from streams.rest.http2_streams import Http2Stream

log = logging.getLogger(__name__)

_STREAMS_MAX: Final = 100
_STREAM_WINDOW: Final = 65_535
_CONNECTION_WINDOW: Final = _STREAMS_MAX * _STREAM_WINDOW
"""A request whose body is not read must not hold up the others of its connection."""
_RESETS_MAX: Final = 1000
"""More requests than these are not given up by an honest client (CVE-2023-44487)."""


class Http2Protocol(asyncio.Protocol):
    """One connection, from its preface on."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        *,
        header_bytes_max: int,
        stall_seconds: float,
    ) -> None:
        self.config = config
        self.loop = loop
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set as soon as there is a connection
        self.streams: dict[int, Http2Stream] = {}
        """The requests that are not over on both sides."""
        self.writable = asyncio.Event()
        self.writable.set()
        self.stall_seconds = stall_seconds
        self._state = server_state
        self._app_state = app_state
        self._resets = 0
        self._is_ending = False
        self._has_heard = True
        self._idle: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._pinging: asyncio.TimerHandle | None = None
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.h2.local_settings.update(
            {
                SettingCodes.MAX_CONCURRENT_STREAMS: _STREAMS_MAX,
                SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: header_bytes_max,
                SettingCodes.ENABLE_PUSH: 0,
            }
        )
        self.h2.decoder.max_header_list_size = header_bytes_max

    # --- the connection ---

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]
        self._connection = HttpConnection(transport)
        self._state.connections.add(self)  # type: ignore[arg-type]  # uvicorn only calls its shutdown()
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(_CONNECTION_WINDOW - self.h2.inbound_flow_control_window)
        self.flush()
        self._rest()
        self._pinging = self.loop.call_later(self.config.timeout_keep_alive, self._ping)

    @override
    def data_received(self, data: bytes) -> None:
        self._has_heard = True
        try:
            events = self.h2.receive_data(data)
        except ProtocolError as error:
            log.debug("a client breaks the rules of HTTP/2", extra={"reason": str(error)})
            self.flush()  # what says so to the client
            self.transport.close()
            return
        for event in events:
            self._handle(event)
        self.flush()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.is_broken |= exc is not None or bool(self.streams)
        self._state.connections.discard(self)
        for timer in (self._idle, self._stalled, self._pinging):
            if timer is not None:
                timer.cancel()
        self._lose_streams()
        self.writable.set()

    def shutdown(self) -> None:
        """Take no further requests, and close when those that run are answered."""
        self._say_goodbye()
        if not self.streams:
            self.transport.close()

    @override
    def pause_writing(self) -> None:
        self.writable.clear()
        self.transport.pause_reading()  # what the client sends now would make us write more
        self._stalled = self.loop.call_later(self.stall_seconds, self._check_reader, self._unread)

    @override
    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        self.writable.set()
        if not self.transport.is_closing():
            self.transport.resume_reading()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of every response, such as the date."""
        return self._state.default_headers

    def flush(self) -> None:
        """Send what is to be sent."""
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def end(self, stream: Http2Stream) -> None:
        """Forget a request that is over on both sides."""
        self.streams.pop(stream.id, None)
        if self.streams:
            return
        if self._is_ending:
            self.transport.close()
        else:
            self._rest()

    def refuse(self, code: h2.errors.ErrorCodes) -> None:
        """Close the connection of a client that goes too far."""
        if not self.transport.is_closing():
            self.h2.close_connection(error_code=code)
            self.flush()
            self.transport.close()

    # --- its events ---

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived(stream_id=int(id), headers=headers):
                self._begin(id, list(headers or ()), has_body=event.stream_ended is None)
            case h2.events.DataReceived(stream_id=int(id)):
                self._take(id, event.data or b"", event.flow_controlled_length or 0)
            case h2.events.StreamEnded(stream_id=int(id)) if id in self.streams:
                self.streams[id].end_body()
            case h2.events.StreamReset(stream_id=int(id)):
                self._reset(id)
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self.streams.values():
                    stream.window.set()
            case h2.events.ConnectionTerminated():
                self._is_ending = True
                self._lose_streams()  # the library takes no more of them
                self.transport.close()
            case _:
                pass

    def _begin(self, id: int, headers: list[tuple[bytes, bytes]], *, has_body: bool) -> None:  # noqa: A002
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        is_busy = len(self.streams) >= _STREAMS_MAX  # those that were given up, and still clean up, count
        if b":path" not in pseudo or is_busy or self._is_ending:
            code = h2.errors.ErrorCodes.REFUSED_STREAM if is_busy else h2.errors.ErrorCodes.PROTOCOL_ERROR
            self.h2.reset_stream(id, error_code=code)
            return
        scope = self._scope(pseudo, headers)
        attach_connection(scope, self._connection)
        stream = Http2Stream(self, id, scope, has_body=has_body)
        self.streams[id] = stream
        limit = self.config.limit_concurrency
        is_full = limit is not None and len(self._state.tasks) >= limit
        task = self.loop.create_task(stream.run(None if is_full else self.config.loaded_app))
        task.add_done_callback(self._state.tasks.discard)
        self._state.tasks.add(task)

    def _scope(self, pseudo: dict[bytes, bytes], headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
        raw_path, _, query = pseudo[b":path"].partition(b"?")
        plain = [(name, value) for name, value in headers if not name.startswith(b":") and name != b"cookie"]
        cookies = [value for name, value in headers if name == b"cookie"]
        if b":authority" in pseudo and not any(name == b"host" for name, _ in plain):
            plain.insert(0, (b"host", pseudo[b":authority"]))
        if cookies:
            plain.append((b"cookie", b"; ".join(cookies)))
        return {
            "type": "http",
            "asgi": {"version": self.config.asgi_version, "spec_version": "2.3"},
            "http_version": "2",
            "method": pseudo[b":method"].decode("latin-1"),
            "scheme": "https" if is_ssl(self.transport) else "http",
            "path": unquote(raw_path.decode("latin-1")),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": self.config.root_path,
            "headers": plain,
            "server": get_local_addr(self.transport),
            "client": get_remote_addr(self.transport),
            "state": self._app_state.copy(),
        }

    def _take(self, id: int, data: bytes, size: int) -> None:  # noqa: A002
        stream = self.streams.get(id)
        if stream is None or not stream.takes_body:
            self.h2.acknowledge_received_data(size, id)
        else:
            stream.add_body(data, size)

    def _reset(self, id: int) -> None:  # noqa: A002
        self._resets += 1
        if self._resets > _RESETS_MAX:
            self.refuse(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
        if stream := self.streams.get(id):
            stream.disconnect()

    def _lose_streams(self) -> None:
        for stream in list(self.streams.values()):
            stream.disconnect()

    # --- time ---

    def _rest(self) -> None:
        """Close the connection unless a request comes in time."""
        if self._idle is None:
            self._idle = self.loop.call_later(self.config.timeout_keep_alive, self.shutdown)

    def _ping(self) -> None:
        """Ask a client that has sent nothing whether it is there; the next time it must have answered."""
        if not self._has_heard:
            self.transport.abort()
            return
        self._has_heard = False
        try:
            self.h2.ping(b"caudal!!")
        except ProtocolError:
            return  # the connection is being closed
        self.flush()
        self._pinging = self.loop.call_later(max(self.config.timeout_keep_alive, 10), self._ping)

    @property
    def _unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _check_reader(self, before: int) -> None:
        if self._unread >= before:
            self._connection.is_broken = True
            self.transport.abort()
        else:
            self._stalled = self.loop.call_later(self.stall_seconds, self._check_reader, self._unread)

    def _say_goodbye(self) -> None:
        """GOAWAY by hand: the library would take it for the end of the requests that run, too."""
        if self._is_ending or self.transport.is_closing():
            return
        self._is_ending = True
        frame = GoAwayFrame(stream_id=0, last_stream_id=self.h2.highest_inbound_stream_id)
        self.flush()
        self.transport.write(frame.serialize())
