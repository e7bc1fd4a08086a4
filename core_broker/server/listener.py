"""A bound listener, which accepts connections within the limits."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final

from core_broker.settings import Listener

log = logging.getLogger(__name__)

_ACCEPTS_PER_TURN_MAX: Final = 64
_PAUSE_SECONDS: Final = 0.1
"""How long to stop accepting when the process has run out of file descriptors."""
_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Pace = Callable[[], float]
"""How many seconds to wait before accepting the next connection; 0 for none."""

OnConnection = Callable[[socket.socket, "BoundListener"], None]


class BoundListener:
    """The listening sockets of one listener of the settings: one for each address of its host."""

    def __init__(
        self, sockets: list[socket.socket], listener: Listener, on_connection: OnConnection, pace: Pace
    ) -> None:
        self._sockets = sockets
        self.listener = listener
        """The listener with the actual port, if 0 was configured."""
        self._on_connection = on_connection
        self._pace = pace
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def bind(
        cls, listener: Listener, on_connection: OnConnection, *, pace: Pace, backlog: int
    ) -> "BoundListener":
        """Bind without accepting yet, so that the port is known before the broker is ready for clients."""
        sockets = await _bind(listener, backlog)
        port = sockets[0].getsockname()[1]
        return cls(sockets, Listener(listener.name, listener.host, port), on_connection, pace)

    def start(self) -> None:
        """Start accepting connections."""
        for sock in self._sockets:
            self._loop.add_reader(sock.fileno(), self._on_ready, sock)

    def close(self) -> None:
        """Stop accepting; accepted connections stay open."""
        for sock in self._sockets:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets = []

    def _on_ready(self, sock: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN_MAX):
            wait_seconds = self._pace()
            if wait_seconds > 0:
                self._pause(sock, wait_seconds)
                return
            try:
                client, _ = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                log.error("cannot accept connections; raise the limit of open files", extra={"error": str(error)})
                self._pause(sock, _PAUSE_SECONDS)
                return
            client.setblocking(False)
            self._on_connection(client, self)

    def _pause(self, sock: socket.socket, seconds: float) -> None:
        self._loop.remove_reader(sock.fileno())
        self._loop.call_later(seconds, self._resume, sock)

    def _resume(self, sock: socket.socket) -> None:
        if sock in self._sockets:
            self._loop.add_reader(sock.fileno(), self._on_ready, sock)


async def _bind(listener: Listener, backlog: int) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    host = listener.host or None
    infos = await loop.getaddrinfo(host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    port = listener.port
    try:
        for family, kind, protocol, _, address in dict.fromkeys(infos):
            sock = _listen((family, kind, protocol), address, port, backlog)
            if sock is not None:
                sockets.append(sock)
                port = port or sock.getsockname()[1]
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    if not sockets:
        raise OSError(errno.EADDRNOTAVAIL, f"{listener}: no address to listen on")
    return sockets


def _listen(kind: tuple[int, int, int], address: tuple[object, ...], port: int, backlog: int) -> socket.socket | None:
    """A listening socket, or None when the machine does not support this kind of address."""
    try:
        sock = socket.socket(*kind)
    except OSError:
        return None
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if kind[0] == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        sock.bind((address[0], port, *address[2:]))
    except OSError as error:
        sock.close()
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        raise
    sock.listen(backlog)
    return sock
