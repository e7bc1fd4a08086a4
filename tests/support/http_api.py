"""A real HTTP server for tests of connectors: it keeps what it is sent, and fails, hangs or goes away as it is told."""

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_HANG_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request that arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is answered; `hangs`: nothing at all, until the test ends."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


class HttpApi:
    """Listens on a port of its own, the same one each time it is started."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.received: list[Received] = []
        """All requests that were answered with success."""
        self.refused: list[Received] = []
        """All others."""
        self.connections = 0
        self.react: Callable[[Received], Reaction] = lambda _: Reaction()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._sockets: set[Any] = set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ending.set()
        self.stop()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen."""
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Go away: nobody listens any more, and what is open is cut."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
            for connection in list(self._sockets):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._sockets.clear()

    def answer(self, request: Received) -> Reaction:
        """React, and keep the request."""
        with self._lock:
            reaction = self.react(request)
            (self.received if reaction.status < 300 and not reaction.hangs else self.refused).append(request)
        if reaction.hangs:
            self._ending.wait(_HANG_SECONDS)
        return reaction

    def opened(self, connection: Any) -> None:
        """A client has connected."""
        with self._lock:
            self.connections += 1
            self._sockets.add(connection)


class _Handler(BaseHTTPRequestHandler):
    api: HttpApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.api.opened(self.connection)

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reaction = self.api.answer(Received(self.command, self.path, dict(self.headers), body))
        if reaction.hangs:
            self.close_connection = True
            return
        self.send_response(reaction.status)
        for name, value in reaction.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reaction.body)))
        self.end_headers()
        self.wfile.write(reaction.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond  # noqa: N815 - the names that the base class looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""
