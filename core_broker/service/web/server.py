"""Runs an HTTP app on uvicorn within a service: it listens before the service is announced and stops with it."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import msgspec
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from core_broker.service.lifecycle import unwrap_single_error
from core_broker.service.web.asgi import Application
from core_broker.service.web.connections import HttpConnection, attach_connection
from core_broker.service.web.settings import WebSettings
from core_broker.service.web.tls import RenewedContext, listener_context

log = logging.getLogger(__name__)

_BACKLOG = 1024
_WEBSOCKET_MAX_BYTES = 1 << 20


class Speaking(msgspec.Struct, frozen=True, kw_only=True):
    """What a service speaks beside HTTP/1.1."""

    protocol: "Callable[[type[BoundedProtocol]], type[asyncio.Protocol]]" = lambda protocol: protocol
    """Makes the class of a connection's protocol, given that of HTTP/1.1."""
    alpn: tuple[str, ...] = ()
    """What https listeners offer to speak."""
    has_websockets: bool = False


_HTTP_1: Speaking = Speaking()


@asynccontextmanager
async def serving(app: Application, settings: WebSettings, *, speaking: Speaking = _HTTP_1) -> AsyncIterator[list[str]]:
    """Serve the app while the block runs; yields the URLs, with the actual ports."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = settings.worker_threads
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # its start and stop lines would repeat ours
    with ExitStack() as sockets:
        bound = [(listener, sockets.enter_context(_bind(listener))) for listener in settings.listeners]
        is_secure = any(map(_is_secure, settings.listeners))
        context = listener_context(settings, alpn=speaking.alpn) if is_secure else None
        servers = [_server(app, settings, context if _is_secure(listener) else None, speaking) for listener, _ in bound]
        async with unwrap_single_error(), asyncio.TaskGroup() as running:
            for server, (_, listening) in zip(servers, bound, strict=True):
                running.create_task(server.serve(sockets=[listening]))
            watching = None if context is None else running.create_task(context.watch(settings))
            try:
                for server in servers:
                    await server.listens.wait()
                yield [_url(listener, listening) for listener, listening in bound]
            finally:
                if watching is not None:
                    watching.cancel()
                for server in servers:
                    server.should_exit = True


def _is_secure(listener: str) -> bool:
    return listener.startswith("https:")


def _bind(listener: str) -> socket.socket:
    parts = urlsplit(listener)
    address = (parts.hostname or "", parts.port or 0)
    everywhere = not address[0] and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if everywhere or ":" in address[0] else socket.AF_INET
    listening = socket.create_server(address, family=family, dualstack_ipv6=everywhere, backlog=_BACKLOG)
    # Connections inherit it; asyncio sets it only on sockets created with an explicit protocol. Without it, a response
    # whose headers and body are written separately is delayed by 40 ms (Nagle's algorithm and delayed ACKs).
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _url(listener: str, listening: socket.socket) -> str:
    parts = urlsplit(listener)
    host = parts.hostname if parts.hostname not in (None, "0.0.0.0", "::") else "localhost"
    shown = f"[{host}]" if ":" in str(host) else host
    return f"{parts.scheme}://{shown}:{listening.getsockname()[1]}"


def _server(app: Application, settings: WebSettings, context: RenewedContext | None, speaking: Speaking) -> "_Server":
    limits = {"max_bytes": settings.request_header_max_bytes, "timeout": settings.request_read_timeout_ms / 1000}
    config = uvicorn.Config(
        app,
        http=speaking.protocol(type("_BoundedProtocol", (BoundedProtocol,), limits)),
        ws="websockets-sansio" if speaking.has_websockets else "none",
        ws_max_size=_WEBSOCKET_MAX_BYTES,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=settings.idle_timeout_ms // 1000,
        timeout_graceful_shutdown=settings.shutdown_timeout_ms // 1000,
        ssl_context_factory=None if context is None else lambda *_: context,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """Signals when it listens, and leaves SIGTERM and SIGINT to the service's own life cycle."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with what it lacks: a limit on the size of headers, and time-outs for clients that stall.

    Such a client sends half of its headers, or stops sending a body that was answered already, or does not read its
    response.
    """

    max_bytes = 0
    timeout = 0.0

    _bytes = 0
    _is_head_read = False
    _reading: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._connection = HttpConnection(transport)
        self._reading = self.loop.call_later(self.timeout, self.transport.close)

    @override
    def data_received(self, data: bytes) -> None:
        if not self._is_head_read:
            if self._bytes > self.max_bytes:
                self.send_400_response("The headers of the request are too long (request.header.max.bytes).")
                return
            self._bytes += len(data)
        super().data_received(data)
        is_waiting = (not self._is_head_read and self._bytes) or (self._is_head_read and self.cycle.response_complete)
        if is_waiting and self._reading is None:
            self._reading = self.loop.call_later(self.timeout, self.transport.close)

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        attach_connection(self.scope, self._connection)

    @override
    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()
        self._is_head_read, self._bytes = True, 0

    @override
    def on_message_complete(self) -> None:
        self._is_head_read, self._bytes = False, 0
        self._stop_waiting()
        super().on_message_complete()

    @override
    def send_400_response(self, msg: str) -> None:
        body = msgspec.json.encode({"error_code": 400, "message": msg})
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader(self.transport.get_write_buffer_size())

    @override
    def resume_writing(self) -> None:
        if self._writing:
            self._writing.cancel()
        super().resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.is_broken |= exc is not None
        self._stop_waiting()
        if self._writing:
            self._writing.cancel()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None

    def _await_reader(self, unread: int) -> None:
        """Check again after the time-out: a client that has read nothing of its response by then is disconnected."""
        self._writing = self.loop.call_later(self.timeout, self._check_reader, unread)

    def _check_reader(self, before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread < before:
            self._await_reader(unread)
        else:
            self._connection.is_broken = True
            self.transport.abort()


def endpoints(urls: Sequence[str]) -> dict[str, str]:
    """What the ready line says about an HTTP service."""
    return {"listeners": ",".join(urls), "metrics": f"{urls[0]}/metrics"}
