"""Connections to the other nodes of the cluster, and requests over them."""

import asyncio
import errno
import logging
import ssl
import sys
from functools import cache
from typing import Final, NamedTuple

from core_broker.peers.connection import Address, PeerConnection
from core_broker.peers.errors import PeerAuthenticationError, PeerError, PeerRefusedError
from core_broker.peers.security import PLAINTEXT, PeerSecurity
from core_broker.protocol.fields import Message

log = logging.getLogger(__name__)

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""The default limit of a response; `socket.request.max.bytes` has the same for requests."""

RECONNECT_SECONDS: Final = 0.05
_AUTHENTICATION_PAUSES: Final = 20
"""How many times longer to wait when an operator has to act: each try costs both nodes a handshake."""


class Peers:
    """Connections to one listener of other nodes, one for each address and purpose, opened on first use and kept."""

    def __init__(
        self,
        *,
        client_id: str,
        security: PeerSecurity = PLAINTEXT,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._client_id = client_id
        self.security = security
        self._frame_bytes_max = frame_bytes_max
        self._reconnect_seconds = reconnect_seconds
        """An address that could not be connected to is not tried again before this time has passed."""
        self._peers: dict[tuple[Address, str], _Peer] = {}
        self._failures: dict[Address, _Failure] = {}
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
                connection = await self._connect(peer, address, deadline)
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

    async def _connect(self, peer: "_Peer", address: Address, deadline: float) -> PeerConnection:
        """The open connection to a peer, made if there is none."""
        loop = asyncio.get_running_loop()
        async with peer.lock:
            if peer.connection is not None:
                peer.connection.drop_if_stuck(loop.time())  # on behalf of callers that were cancelled
                if peer.connection.is_open:
                    return peer.connection
                if isinstance(peer.connection.failure, PeerAuthenticationError):
                    self._remember(address, peer.connection.failure, peer.connection.failed_at)
                    peer.connection = None
            if self._closed.is_set():
                raise PeerError(f"{address}: closed")
            failure = self._failures.get(address)
            if failure is not None and loop.time() < failure.retry_at:
                raise failure.kind(failure.text)
            try:
                connection = await self._new_connection(address, deadline)
            except PeerError as error:
                self._remember(address, error, loop.time())
                raise
            if address in self._failures:
                self._forget(address)
            if self._closed.is_set():
                await connection.close()
                raise PeerError(f"{address}: closed")
            peer.connection = connection
            return connection

    async def _new_connection(self, address: Address, deadline: float) -> PeerConnection:
        """A new connection, ready for any request. Raises PeerError."""
        security = self.security
        try:
            context = await security.tls_context()
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: PeerConnection(
                    address, client_id=self._client_id, frame_bytes_max=self._frame_bytes_max, security=security
                ),
                address.host,
                address.port,
                ssl=context,
                server_hostname=None if context is None else address.host,
            )
        except ssl.SSLError as error:
            raise security.tls_failure(str(address), error) from error
        except OSError as error:
            # For a host with several addresses, asyncio raises one error with the texts of all.
            is_refused = f"[Errno {errno.ECONNREFUSED}]" in str(error)
            failure = PeerRefusedError if is_refused else PeerError
            hint = f"; {security.mismatch}" if isinstance(error, ConnectionError) and not is_refused else ""
            raise failure(f"cannot connect to {address}: {error}{hint}") from error
        try:
            await connection.log_in(deadline=deadline)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _remember(self, address: Address, error: PeerError, failed_at: float) -> None:
        """Leave an address alone for a moment; an operator hears once of what only an operator can change."""
        if isinstance(error, PeerAuthenticationError):
            known = self._failures.get(address)
            if known is None or known.text != str(error):
                log.warning("a node cannot be talked to", extra={"address": str(address), "reason": str(error)})
            pause_seconds = self._reconnect_seconds * _AUTHENTICATION_PAUSES
            self._failures[address] = _Failure(failed_at + pause_seconds, type(error), str(error))
        else:
            text = f"{address} refused a connection just now"
            self._failures[address] = _Failure(failed_at + self._reconnect_seconds, type(error), text)

    def _forget(self, address: Address) -> None:
        failure = self._failures.pop(address)
        if issubclass(failure.kind, PeerAuthenticationError):
            log.info("a node can be talked to again", extra={"address": str(address)})


class _Failure(NamedTuple):
    """Why an address could not be connected to the last time."""

    retry_at: float
    kind: type[PeerError]
    text: str


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


__all__ = ["Address", "PeerAuthenticationError", "PeerError", "PeerRefusedError", "Peers", "response_type"]
