"""Connections that speak HTTP/1.1 or HTTP/2: the first bytes of the client say which.

Clients of ksqlDB begin with HTTP/2 at once ("prior knowledge"), in clear text as well as after TLS.
"""

import asyncio
import socket
from typing import Any, Final

from typing_extensions import override
from uvicorn.config import Config
from uvicorn.server import ServerState

from core_broker.service.web.server import BoundedProtocol, Speaking
from streams.rest.http2 import Http2Protocol

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_PROBES: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A push query without rows writes nothing: only the system's probes tell that its client is gone."""


def speaking(*, stall_seconds: float) -> Speaking:
    """What this service speaks; a client of HTTP/2 that reads nothing of a response for so long is disconnected."""

    def protocol_of(http_1: type[BoundedProtocol]) -> type[asyncio.Protocol]:
        return type("_EitherProtocol", (EitherProtocol,), {"http_1": http_1, "stall_seconds": stall_seconds})

    return Speaking(protocol=protocol_of, alpn=("h2", "http/1.1"), has_websockets=True)


class EitherProtocol(asyncio.Protocol):
    """A new connection, until its first bytes have come."""

    http_1: type[BoundedProtocol]
    stall_seconds: float

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self._arguments = (config, server_state, app_state)
        self._loop = _loop or asyncio.get_running_loop()
        self._connections = server_state.connections
        self._transport: Any = None
        self._received = b""
        self._waiting: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._connections.add(self)  # type: ignore[arg-type]  # uvicorn only calls its shutdown()
        self._waiting = self._loop.call_later(self.http_1.timeout, transport.close)
        _probe(transport.get_extra_info("socket"))

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        begin = self._received[: len(_PREFACE)]
        if not _PREFACE.startswith(begin):
            self._hand_over(self.http_1(*self._arguments, self._loop))
        elif begin == _PREFACE:
            self._hand_over(
                Http2Protocol(
                    *self._arguments,
                    self._loop,
                    header_bytes_max=self.http_1.max_bytes,
                    stall_seconds=self.stall_seconds,
                )
            )

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()

    def shutdown(self) -> None:
        """The server stops."""
        self._transport.close()

    def _hand_over(self, protocol: asyncio.Protocol) -> None:
        self._forget()
        protocol.connection_made(self._transport)
        self._transport.set_protocol(protocol)
        protocol.data_received(self._received)

    def _forget(self) -> None:
        self._connections.discard(self)
        if self._waiting is not None:
            self._waiting.cancel()


def _probe(connection: Any) -> None:
    """Let the system find out when the client's machine is gone."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBES:
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    except OSError:
        pass  # it is gone already
