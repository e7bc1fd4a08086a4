"""One connection to another node: requests are pipelined, and each response finds its request by correlation id.

A large response is received straight into a buffer of its own size, and the records of a decoded Fetch response are
views of that buffer: replicated data is copied once, by the kernel, or with TLS by what decrypts it.
"""

import asyncio
import random
import ssl
import struct
from itertools import count
from math import inf
from typing import Final, NamedTuple, TypeVar

from typing_extensions import override

from core_broker.errors import ErrorCode
from core_broker.peers.errors import PeerAuthenticationError, PeerError
from core_broker.peers.login import log_in
from core_broker.peers.security import PLAINTEXT, PeerSecurity
from core_broker.protocol.fields import Message, decode, encoder
from core_broker.protocol.frames import SIZE_BYTES
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.primitives import DecodeError, skip_tagged_fields

IN_FLIGHT_MAX: Final = 5
"""Requests on one connection that have no response yet; further ones wait."""

_SMALL_BYTES: Final = 16 * 1024
"""Responses up to this size are received into a buffer that the connection keeps."""
_CORRELATION_ID_BYTES: Final = 4
_SOFTWARE: Final = ApiVersionsRequest("caudal", "unknown")
_TLS_ALERT: Final = 0x1503
"""How a TLS record with an alert begins: the answer of a TLS listener to a request in plain text."""
_RENEWED_AFTER: Final = (0.85, 0.95)
"""The part of a session's lifetime after which it is renewed, as by Kafka's clients (KIP-368): not all at once."""

_unpack_int = struct.Struct(">i").unpack_from
_unpack_short = struct.Struct(">h").unpack_from
_pack_size = struct.Struct(">i").pack_into
_pack_header = struct.Struct(">ihhih").pack

R = TypeVar("R", bound=Message)


class Address(NamedTuple):
    """Where a node listens."""

    host: str
    port: int

    @override
    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class _InFlight(NamedTuple):
    response: asyncio.Future[memoryview]
    """Cancelled if the caller no longer waits; the response is then dropped."""
    deadline: float


class PeerConnection(asyncio.BufferedProtocol):
    """A connection from connect to close. asyncio sets TCP_NODELAY on it."""

    def __init__(
        self, address: Address, *, client_id: str, frame_bytes_max: int, security: PeerSecurity = PLAINTEXT
    ) -> None:
        self._address = address
        self._security = security
        self._client_id = client_id.encode()
        self._frame_bytes_max = frame_bytes_max
        self._transport: asyncio.Transport | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failure: PeerError | None = None
        """Why the connection ended; requests fail with it."""
        self.failed_at = -inf
        self._correlation_ids = count(1)
        self._in_flight: dict[int, _InFlight] = {}
        self._free_slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._versions: dict[int, tuple[int, int]] | None = None
        self._versions_lock = asyncio.Lock()
        self._has_answered = False
        self._renew_at = inf
        """When to log in again, before the peer ends the session (KIP-368)."""
        self._renewal: asyncio.Task[None] | None = None
        self._small = memoryview(bytearray(_SMALL_BYTES))
        self._large: memoryview | None = None
        self._filled = 0
        """Bytes received into the large buffer if there is one, else into the small one."""

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self.failure is None

    async def log_in(self, *, deadline: float) -> None:
        """Prove to the peer who this node is, as its listener wants it. Raises PeerError.

        Not before it has returned may other requests be sent.
        """
        if self._security.lacks_login:
            raise PeerAuthenticationError(f"no credentials for {self._address}; {self._security.mismatch}")
        if self._security.login is None:
            if self._security.uses_tls:  # with TLS 1.3 only a response shows that the peer accepts our certificate
                await self.negotiate(ApiVersionsRequest, deadline=deadline)
            return
        lifetime_seconds = await log_in(self._security.login, self, address=str(self._address), deadline=deadline)
        if lifetime_seconds is not None:
            now = asyncio.get_running_loop().time()
            self._renew_at = now + lifetime_seconds * random.uniform(*_RENEWED_AFTER)

    async def call(self, request: Message, response: type[R], *, version: int, deadline: float) -> R:
        """Send a request and wait for its response; the caller limits the time. Raises PeerError."""
        if asyncio.get_running_loop().time() >= self._renew_at:
            await self._renew_session(deadline)
        return await self.exchange(request, response, version=version, deadline=deadline)

    async def exchange(self, request: Message, response: type[R], *, version: int, deadline: float) -> R:
        """As `call`, also while the session is not valid yet or no longer: for the requests that make it so."""
        frame = await self._send(request, version, deadline)
        try:
            position = _CORRELATION_ID_BYTES
            if version >= request.FLEXIBLE_SINCE and request.API_KEY != ApiVersionsRequest.API_KEY:
                position = skip_tagged_fields(frame, position, len(frame))
            return decode(response, version, frame, position)
        except (DecodeError, IndexError) as error:
            raise PeerError(f"{self._address} sent an invalid response: {error}") from error

    async def negotiate(self, request: type[Message], *, deadline: float) -> int:
        """The highest version of a request that both nodes know; asks the peer once. Raises PeerError."""
        async with self._versions_lock:
            if self._versions is None:
                self._versions = await self._ask_versions(deadline)
        assert request.API_KEY is not None, "only requests can be sent"
        first, last = self._versions.get(request.API_KEY, (0, -1))
        version = min(last, request.VERSIONS[1])
        if version < max(first, request.VERSIONS[0]):
            offered = f"versions {first}-{last}" if first <= last else "no version"
            raise PeerError(f"{self._address} offers {offered} of {request.__name__}, which is not supported here")
        return version

    def drop_if_stuck(self, now: float) -> None:
        """Drop the connection if its oldest request is overdue, since all others wait behind it.

        A newer request that is overdue may have waited for a slow one, so it is no reason.
        """
        oldest = next(iter(self._in_flight.values()), None)
        if oldest is not None and oldest.deadline <= now:
            self._fail(PeerError(f"{self._address}: the oldest request timed out"))

    async def close(self) -> None:
        """Close the connection; its requests fail."""
        self._fail(PeerError(f"{self._address}: closed"))
        if self._transport is not None:
            await asyncio.wait([self._lost])  # which does not cancel it with the caller

    # -- requests --

    async def _renew_session(self, deadline: float) -> None:
        """Log in again, once for all requests that wait for it; those on their way are answered as usual.

        A request that is cancelled leaves the login to the others.
        """
        if self._renewal is None:
            self._renewal = asyncio.get_running_loop().create_task(self._log_in_again(deadline))
        await asyncio.shield(self._renewal)
        if self.failure is not None:
            raise self._error()

    async def _log_in_again(self, deadline: float) -> None:
        try:
            await self.log_in(deadline=deadline)
        except PeerError as error:
            self._fail(error)  # which every request that waits will raise
        finally:
            self._renewal = None

    async def _ask_versions(self, deadline: float) -> dict[int, tuple[int, int]]:
        """The versions of each API that the peer offers, by key (KIP-511)."""
        version = ApiVersionsRequest.VERSIONS[1]
        frame = await self._send(_SOFTWARE, version, deadline)
        try:
            if _unpack_short(frame, _CORRELATION_ID_BYTES)[0] == ErrorCode.UNSUPPORTED_VERSION:
                # An older peer refuses in the layout of version 0, and says which versions it knows.
                refusal = decode(ApiVersionsResponse, 0, frame, _CORRELATION_ID_BYTES)
                offered = (api.max_version for api in refusal.api_keys if api.api_key == ApiVersionsRequest.API_KEY)
                version = min(version, next(offered, 0))
                frame = await self._send(_SOFTWARE, version, deadline)
            response = decode(ApiVersionsResponse, version, frame, _CORRELATION_ID_BYTES)
        except (DecodeError, struct.error) as error:
            raise PeerError(f"{self._address} sent an invalid response to ApiVersions: {error}") from error
        if response.error_code:
            raise PeerError(f"{self._address} refused ApiVersions with error {response.error_code}")
        return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    async def _send(self, request: Message, version: int, deadline: float) -> memoryview:
        """Send a request; returns the response with its header. A slot is freed when the response arrives."""
        correlation_id = next(self._correlation_ids) & 0x7FFFFFFF
        frame = self._encode(request, version, correlation_id)
        await self._free_slots.acquire()
        if self.failure is not None or self._transport is None:
            self._free_slots.release()  # wakes the next in the queue, which fails as well
            raise self._error()
        response: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._in_flight[correlation_id] = _InFlight(response, deadline)
        self._transport.write(frame)
        return await response

    def _encode(self, request: Message, version: int, correlation_id: int) -> bytearray:
        assert request.API_KEY is not None, "only requests can be sent"
        frame = bytearray(_pack_header(0, request.API_KEY, version, correlation_id, len(self._client_id)))
        frame += self._client_id
        if version >= request.FLEXIBLE_SINCE:
            frame.append(0)
        encoder(type(request), version)(request, frame)
        _pack_size(frame, 0, len(frame) - SIZE_BYTES)
        return frame

    # -- called by the event loop --

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        reason = "connection lost" if exc is None else f"connection lost: {exc}"
        if self._has_answered:
            self._fail(PeerError(f"{self._address}: {reason}"))
        elif isinstance(exc, ssl.SSLError):  # with TLS 1.3 a client learns only now that its certificate was refused
            self._fail(self._security.tls_failure(str(self._address), exc))
        else:
            self._fail(PeerError(f"{self._address}: {reason} before the first response; {self._security.mismatch}"))
        self._lost.set_result(None)

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return (self._small if self._large is None else self._large)[self._filled :]

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._large is None:
            self._take_small_frames()
        elif self._filled == len(self._large):
            frame, self._large, self._filled = self._large, None, 0
            self._deliver(frame)

    # -- responses --

    def _take_small_frames(self) -> None:
        """Deliver the complete frames in the small buffer, and prepare for the rest of the last one."""
        small, end = self._small, self._filled
        start = 0
        while self.failure is None and end - start >= SIZE_BYTES:
            size: int = _unpack_int(small, start)[0]
            if not _CORRELATION_ID_BYTES <= size <= self._frame_bytes_max:
                self._fail(self._invalid_size(size))
                return
            body = start + SIZE_BYTES
            if body + size > end:
                if SIZE_BYTES + size > len(small):
                    self._begin_large(small[body:end], size)
                    return
                break
            start = body + size
            self._deliver(memoryview(bytes(small[body:start])))
        self._filled = end - start
        if start and self._filled:
            small[: self._filled] = bytes(small[start:end])

    def _begin_large(self, beginning: memoryview, size: int) -> None:
        self._large = memoryview(bytearray(size))
        self._filled = len(beginning)
        self._large[: self._filled] = beginning

    def _deliver(self, frame: memoryview) -> None:
        correlation_id: int = _unpack_int(frame, 0)[0]
        request = self._in_flight.pop(correlation_id, None)
        if request is None:
            self._fail(PeerError(f"{self._address}: received a response to an unknown request ({correlation_id})"))
            return
        self._has_answered = True
        self._free_slots.release()
        if not request.response.done():
            request.response.set_result(frame)

    def _invalid_size(self, size: int) -> PeerError:
        if size >> 16 == _TLS_ALERT and not self._has_answered:
            return PeerAuthenticationError(f"{self._address} expects TLS; {self._security.mismatch}")
        allowed = f"at most {self._frame_bytes_max} are allowed"
        return PeerError(f"{self._address}: received a frame of {size} bytes; {allowed}")

    def _fail(self, failure: PeerError) -> None:
        """Close the connection, unless it is closed, and fail all of its requests."""
        if self.failure is not None:
            return
        self.failure, self.failed_at = failure, asyncio.get_running_loop().time()
        if self._transport is not None:
            self._transport.abort()
        requests, self._in_flight = self._in_flight, {}
        for request in requests.values():
            self._free_slots.release()
            if not request.response.done():
                request.response.set_exception(self._error())

    def _error(self) -> PeerError:
        """A new exception for each request: they are raised in different tasks."""
        if self.failure is None:
            return PeerError(f"{self._address}: not connected")
        return type(self.failure)(*self.failure.args)
