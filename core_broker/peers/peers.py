"""Connections to the other nodes of the cluster, and requests over them."""

import asyncio
import errno
import sys
from functools import cache
from math import inf
from typing import Final

from core_broker.peers.connection import Address, PeerConnection, PeerError, PeerRefusedError
from core_broker.protocol.fields import Message

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""The default limit of a response; `socket.request.max.bytes` has the same for requests."""

RECONNECT_SECONDS: Final = 0.05


class Peers:
    """Connections to other nodes, one for each address and purpose, opened on first use and kept."""

    def __init__(
        self,
        *,
        client_id: str,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._client_id = client_id
        self._frame_bytes_max = frame_bytes_max
        self._reconnect_seconds = reconnect_seconds
        """An address that could not be connected to is not tried again before this time has passed."""
        self._peers: dict[tuple[Address, str], _Peer] = {}
        self._failures: dict[Address, tuple[float, type[PeerError]]] = {}
        self._closed = asyncio.Event()

    async def call(
        self,
        address: Address,
        request: Message,
        *,
        timeout_seconds: float,
        purpose: str = "",
        version: int | None = None,
    ) -> Message:
        """Send a request and wait for its response; raises PeerError, after which the caller may try again.

        Without a `version`, the highest that both nodes know is sent. Requests with the same purpose share a connection
        and are answered in order, so a slow one delays those behind it.
        """
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        peer = self._peers.setdefault((address, purpose), _Peer())
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self._connect(peer, address)
                if version is None:
                    version = await connection.negotiate(type(request), deadline=deadline)
                response = response_type(type(request))
                return await connection.call(request, response, version=version, deadline=deadline)
        except TimeoutError:
            if peer.connection is not None:
                peer.connection.drop_if_stuck(deadline)
            name = type(request).__name__
            raise PeerError(f"{address} did not answer {name} within {timeout_seconds:g} seconds") from None

    async def close(self) -> None:
        """Close all connections; requests without a response fail."""
        self._closed.set()
        connections = [peer.connection for peer in self._peers.values() if peer.connection is not None]
        self._peers.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _connect(self, peer: "_Peer", address: Address) -> PeerConnection:
        """The open connection to a peer, made if there is none."""
        loop = asyncio.get_running_loop()
        async with peer.lock:
            if peer.connection is not None:
                peer.connection.drop_if_stuck(loop.time())  # on behalf of callers that were cancelled
                if peer.connection.is_open:
                    return peer.connection
            if self._closed.is_set():
                raise PeerError(f"{address}: closed")
            failed_at, failure = self._failures.get(address, (-inf, PeerError))
            if loop.time() - failed_at < self._reconnect_seconds:
                raise failure(f"{address} refused a connection just now")
            try:
                _, connection = await loop.create_connection(
                    lambda: PeerConnection(address, client_id=self._client_id, frame_bytes_max=self._frame_bytes_max),
                    address.host,
                    address.port,
                )
            except OSError as error:
                # For a host with several addresses, asyncio raises one error with the texts of all.
                is_refused = f"[Errno {errno.ECONNREFUSED}]" in str(error)
                failure = PeerRefusedError if is_refused else PeerError
                self._failures[address] = loop.time(), failure
                raise failure(f"cannot connect to {address}: {error}") from error
            self._failures.pop(address, None)
            if self._closed.is_set():
                await connection.close()
                raise PeerError(f"{address}: closed")
            peer.connection = connection
            return connection


class _Peer:
    """An address and purpose: its connection, and the lock under which it is opened."""

    __slots__ = ("connection", "lock")

    def __init__(self) -> None:
        self.connection: PeerConnection | None = None
        self.lock = asyncio.Lock()


@cache
def response_type(request: type[Message]) -> type[Message]:
    """The class of the response to a request: every module of messages defines both."""
    name = request.__name__.removesuffix("Request") + "Response"
    response: type[Message] = getattr(sys.modules[request.__module__], name)
    return response


__all__ = ["Address", "PeerError", "PeerRefusedError", "Peers", "response_type"]
