"""Streams of API v3: records arrive one after the other in one request, and results are sent while it goes on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import islice

import msgspec

from core_broker.client.errors import NotAllowed
from rest_proxy.errors import ProxyError, from_cluster, too_many, unavailable
from rest_proxy.identity import Identity
from rest_proxy.produce.v3.results import encode, failed_record
from rest_proxy.produce.v3.sender import Destination, Result, V3RecordSender, WrittenRecord, is_end
from rest_proxy.produce.v3.splitting import Splitter

NextChunk = Callable[[], Awaitable[bytes | None]]
"""Returns more of the body, or None at its end; any other error than ProxyError ends the stream without a response."""

_MAX_IN_FLIGHT = 1_000
"""Records of one stream that are in flight at once; no more of the body is read meanwhile."""
_CHUNK = 200
"""Encoding with schemas takes long: other requests get a turn after this many records."""
_END_OF_LINE = b"\r\n"


class StreamLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one stream."""

    max_record_bytes: int
    idle_seconds: float
    """How long the client may send nothing."""
    max_seconds: float
    """How long records are accepted."""
    grace_seconds: float
    """For how long after that they are refused one by one, before the stream ends."""


class RecordStreams:
    """The open streams; they end together when the proxy stops."""

    def __init__(self, max_bytes: int = 256 * 1024 * 1024) -> None:
        """`max_bytes` bounds the size of all incomplete records, over all streams."""
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: set[asyncio.Timeout] = set()
        self._is_stopping = False

    @property
    def waiting(self) -> int:
        """The number of streams that wait for more of their bodies."""
        return len(self._waiting)

    def stop(self) -> None:
        """End all streams; the last line of each says why."""
        self._is_stopping = True
        for timeout in self._waiting:
            timeout.reschedule(0)

    async def wait(self, next_chunk: NextChunk, until: float, *, partial_bytes: int = 0) -> bytes | None:
        """Wait for more of a body, of which `partial_bytes` of an incomplete record are in memory.

        Raises TimeoutError when nothing has come by then, ProxyError when the proxy stops or incomplete records take
        too much memory.
        """
        if self._is_stopping:
            raise _proxy_stops()
        # A single stream may always go on.
        if partial_bytes and self._bytes and self._bytes + partial_bytes > self._max_bytes:
            raise too_many(f"Incomplete records of all streams take {self._max_bytes} bytes (requests.max.bytes)")
        try:
            async with asyncio.timeout_at(until) as timeout:
                self._waiting.add(timeout)
                self._bytes += partial_bytes
                try:
                    return await next_chunk()
                finally:
                    self._bytes -= partial_bytes
                    self._waiting.discard(timeout)
        except TimeoutError:
            if self._is_stopping:
                raise _proxy_stops() from None
            raise


class RecordStream:
    """Sends the records of one request and yields their results in order, each as a line of JSON."""

    def __init__(
        self,
        sender: V3RecordSender,
        destination: Destination,
        *,
        limits: StreamLimits,
        streams: RecordStreams,
        identity: Identity | None = None,
    ) -> None:
        """`identity` is asked whether its login is still good."""
        self._sender = sender
        self._identity = identity
        self._destination = destination
        self._limits = limits
        self._streams = streams
        self._splitter = Splitter(limits.max_record_bytes)
        self._time = asyncio.get_running_loop().time
        self._late_after = self._time() + limits.max_seconds
        self._ends_at = self._late_after + limits.grace_seconds
        self._check_at = self._next_check()

    async def answers(self, next_chunk: NextChunk) -> AsyncIterator[bytes]:
        """Lines with results, as soon as there are any; ends with the body, or with a line that says why."""
        is_over = False
        while not is_over:
            try:
                chunk = await self._next_chunk(next_chunk)
                if chunk is None:
                    self._splitter.finish()
                    return
            except ProxyError as error:
                yield lines([error])
                return
            texts = self._splitter.split(chunk)
            group: Sequence[WrittenRecord | ProxyError] = ()
            while not is_over:
                group, is_over = await self._read(texts)
                if not group:
                    break
                yield lines(await self._sender.send(group, self._destination))

    async def _next_chunk(self, next_chunk: NextChunk) -> bytes | None:
        limits = self._limits
        until = min(self._time() + limits.idle_seconds, self._ends_at)
        while True:
            await self._check_login()
            try:
                wait_until = min(until, self._check_at)
                return await self._streams.wait(next_chunk, wait_until, partial_bytes=self._splitter.partial_bytes)
            except TimeoutError:
                if self._check_at < until:
                    continue
                if until < self._ends_at:
                    reason = f"No record arrived within {limits.idle_seconds:g} s"
                    raise ProxyError(408, f"{reason} (streaming.connection.idle.timeout.ms)") from None
                raise _open_too_long() from None

    async def _check_login(self) -> None:
        """Raise ProxyError if the cluster does not accept the caller any more; asks it only now and then."""
        if self._identity is None or self._time() < self._check_at:
            return
        try:
            await asyncio.to_thread(self._identity.check_stream)
        except NotAllowed as error:
            raise from_cluster(error) from error
        self._check_at = self._next_check()

    def _next_check(self) -> float:
        return float("inf") if self._identity is None else self._time() + self._identity.stream_check_seconds

    async def _read(self, texts: Iterator[bytes]) -> tuple[list[WrittenRecord | ProxyError], bool]:
        """Encode the next records, as many as may be in flight at once; also returns whether nothing can follow."""
        group: list[WrittenRecord | ProxyError] = []
        topic = self._destination.topic
        is_late = self._time() >= self._late_after
        try:
            for text in islice(texts, _MAX_IN_FLIGHT):
                written = _open_too_long() if is_late else await self._sender.write_text(text, topic)
                group.append(written)
                if is_end(written):
                    return group, True
                if len(group) % _CHUNK == 0:
                    await asyncio.sleep(0)
        except ProxyError as error:
            return [*group, error], True
        return group, False


def lines(results: Sequence[Result]) -> bytes:
    """Results, each in a line of its own."""
    encoded = [encode(failed_record(result) if isinstance(result, ProxyError) else result) for result in results]
    return _END_OF_LINE.join([*encoded, b""])


def _open_too_long() -> ProxyError:
    return ProxyError(408, "Streaming connection open for longer than allowed: Connection will be closed.")


def _proxy_stops() -> ProxyError:
    return unavailable("The proxy is shutting down and accepts no more records.")
