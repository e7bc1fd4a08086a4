"""One connection to another node: requests are pipelined, and each response finds its request by correlation id.

A large response is received straight into a buffer of its own size, and the records of a decoded Fetch response are
views of that buffer: replicated data is copied once, by the kernel.
"""

import asyncio
import struct
from itertools import count
from typing import Final, NamedTuple, TypeVar

from typing_extensions import override

from core_broker.errors import ErrorCode
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


class PeerError(Exception):
    """A request got no usable response: connection refused or lost, time-out, unsupported version, invalid response."""


class PeerRefusedError(PeerError):
    """The connection was refused: the machine is there, but no process listens at the address."""


class _InFlight(NamedTuple):
    response: asyncio.Future[memoryview]
    """Cancelled if the caller no longer waits; the response is then dropped."""
    deadline: float


class PeerConnection(asyncio.BufferedProtocol):
    """A connection from connect to close. asyncio sets TCP_NODELAY on it."""

    def __init__(self, address: Address, *, client_id: str, frame_bytes_max: int) -> None:
        self._address = address
        self._client_id = client_id.encode()
        self._frame_bytes_max = frame_bytes_max
        self._transport: asyncio.Transport | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure: str | None = None
        self._correlation_ids = count(1)
        self._in_flight: dict[int, _InFlight] = {}
        self._free_slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._versions: dict[int, tuple[int, int]] | None = None
        self._versions_lock = asyncio.Lock()
        self._small = memoryview(bytearray(_SMALL_BYTES))
        self._large: memoryview | None = None
        self._filled = 0
        """Bytes received into the large buffer if there is one, else into the small one."""

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._failure is None

    async def call(self, request: Message, response: type[R], *, version: int, deadline: float) -> R:
        """Send a request and wait for its response; the caller limits the time. Raises PeerError."""
        frame = await self._exchange(request, version, deadline)
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
            self._fail("the oldest request timed out")

    async def close(self) -> None:
        """Close the connection; its requests fail."""
        self._fail("closed")
        if self._transport is not None:
            await self._lost

    # -- requests --

    async def _ask_versions(self, deadline: float) -> dict[int, tuple[int, int]]:
        """The versions of each API that the peer offers, by key (KIP-511)."""
        version = ApiVersionsRequest.VERSIONS[1]
        frame = await self._exchange(_SOFTWARE, version, deadline)
        try:
            if _unpack_short(frame, _CORRELATION_ID_BYTES)[0] == ErrorCode.UNSUPPORTED_VERSION:
                # An older peer refuses in the layout of version 0, and says which versions it knows.
                refusal = decode(ApiVersionsResponse, 0, frame, _CORRELATION_ID_BYTES)
                offered = (api.max_version for api in refusal.api_keys if api.api_key == ApiVersionsRequest.API_KEY)
                version = min(version, next(offered, 0))
                frame = await self._exchange(_SOFTWARE, version, deadline)
            response = decode(ApiVersionsResponse, version, frame, _CORRELATION_ID_BYTES)
        except (DecodeError, struct.error) as error:
            raise PeerError(f"{self._address} sent an invalid response to ApiVersions: {error}") from error
        if response.error_code:
            raise PeerError(f"{self._address} refused ApiVersions with error {response.error_code}")
        return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    async def _exchange(self, request: Message, version: int, deadline: float) -> memoryview:
        """Send a request; returns the response with its header. A slot is freed when the response arrives."""
        correlation_id = next(self._correlation_ids) & 0x7FFFFFFF
        frame = self._encode(request, version, correlation_id)
        await self._free_slots.acquire()
        if self._failure is not None or self._transport is None:
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
        self._fail("connection lost" if exc is None else f"connection lost: {exc}")
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
        while self._failure is None and end - start >= SIZE_BYTES:
            size: int = _unpack_int(small, start)[0]
            if not _CORRELATION_ID_BYTES <= size <= self._frame_bytes_max:
                self._fail(f"received a frame of {size} bytes; at most {self._frame_bytes_max} are allowed")
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
            self._fail(f"received a response to an unknown request ({correlation_id})")
            return
        self._free_slots.release()
        if not request.response.done():
            request.response.set_result(frame)

    def _fail(self, reason: str) -> None:
        """Close the connection, unless it is closed, and fail all of its requests."""
        if self._failure is not None:
            return
        self._failure = reason
        if self._transport is not None:
            self._transport.abort()
        requests, self._in_flight = self._in_flight, {}
        for request in requests.values():
            self._free_slots.release()
            if not request.response.done():
                request.response.set_exception(self._error())

    def _error(self) -> PeerError:
        return PeerError(f"{self._address}: {self._failure or 'not connected'}")
