"""Records that arrive one after the other in one request, each answered while others are still on their way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import islice

import msgspec

from rest_proxy.errors import ProxyError, too_many, unavailable
from rest_proxy.produce.v3.records import Destination, RecordSender, Result, WrittenRecord, is_end
from rest_proxy.produce.v3.results import encode, failure
from rest_proxy.produce.v3.splitting import Splitter

NextChunk = Callable[[], Awaitable[bytes | None]]
"""More of the body, or None when it is over; may raise whatever ends the stream without an answer."""

_MAX_IN_FLIGHT = 1_000
"""Records of one stream that are on their way at once; no more of the body is read meanwhile."""
_AT_A_TIME = 200
"""Records by schemas take long: so many are written before others get their turn."""
_END_OF_LINE = b"\r\n"


class StreamLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one stream is taken, and for how long."""

    max_record_bytes: int
    idle_seconds: float
    """How long nothing may come."""
    max_seconds: float
    """How long records are taken."""
    grace_seconds: float
    """How much longer they are refused one by one, before the stream ends."""


class RecordStreams:
    """The streams that are open; they end together when the proxy stops."""

    def __init__(self, max_bytes: int = 256 * 1024 * 1024) -> None:
        """`max_bytes` bounds what has come of records whose rest is awaited, of all streams together."""
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: set[asyncio.Timeout] = set()
        self._is_stopping = False

    @property
    def waiting(self) -> int:
        """How many streams wait for more of their bodies."""
        return len(self._waiting)

    def stop(self) -> None:
        """Let all streams end, each with the reason as its last words."""
        self._is_stopping = True
        for timeout in self._waiting:
            timeout.reschedule(0)

    async def wait(self, next_chunk: NextChunk, until: float, *, begun: int = 0) -> bytes | None:
        """More of a body, of which some bytes of a record have begun to come.

        Raises TimeoutError when no more has come by then, ProxyError when the proxy stops or too much is begun.
        """
        if self._is_stopping:
            raise _stopped()
        if begun and self._bytes and self._bytes + begun > self._max_bytes:
            raise too_many(f"Records that have not come to their end have {self._max_bytes} bytes (requests.max.bytes)")
        try:
            async with asyncio.timeout_at(until) as timeout:
                self._waiting.add(timeout)
                self._bytes += begun
                try:
                    return await next_chunk()
                finally:
                    self._bytes -= begun
                    self._waiting.discard(timeout)
        except TimeoutError:
            if self._is_stopping:
                raise _stopped() from None
            raise


class RecordStream:
    """Answers the records of one request in their order, each in a line of JSON."""

    def __init__(
        self, sender: RecordSender, destination: Destination, *, limits: StreamLimits, streams: RecordStreams
    ) -> None:
        self._sender = sender
        self._destination = destination
        self._limits = limits
        self._streams = streams
        self._splitter = Splitter(limits.max_record_bytes)
        self._time = asyncio.get_running_loop().time
        self._late_after = self._time() + limits.max_seconds
        self._ends_at = self._late_after + limits.grace_seconds

    async def answers(self, next_chunk: NextChunk) -> AsyncIterator[bytes]:
        """Lines of answers, as soon as there are any; ends with the body, or after the line that says why."""
        is_over = False
        while not is_over:
            try:
                chunk = await self._next(next_chunk)
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

    async def _next(self, next_chunk: NextChunk) -> bytes | None:
        limits = self._limits
        until = min(self._time() + limits.idle_seconds, self._ends_at)
        try:
            return await self._streams.wait(next_chunk, until, begun=self._splitter.begun)
        except TimeoutError:
            if until < self._ends_at:
                reason = f"No record came within {limits.idle_seconds:g} s (streaming.connection.idle.timeout.ms)"
                raise ProxyError(408, reason) from None
            raise _late() from None

    async def _read(self, texts: Iterator[bytes]) -> tuple[list[WrittenRecord | ProxyError], bool]:
        """The next records, as many as may be on their way at once, and whether nothing can follow them."""
        group: list[WrittenRecord | ProxyError] = []
        topic = self._destination.topic
        is_late = self._time() >= self._late_after
        try:
            for text in islice(texts, _MAX_IN_FLIGHT):
                written = _late() if is_late else await self._sender.write_text(text, topic)
                group.append(written)
                if is_end(written):
                    return group, True
                if len(group) % _AT_A_TIME == 0:
                    await asyncio.sleep(0)
        except ProxyError as error:
            return [*group, error], True
        return group, False


def lines(results: Sequence[Result]) -> bytes:
    """Answers, each in a line of its own."""
    told = [encode(failure(result) if isinstance(result, ProxyError) else result) for result in results]
    return _END_OF_LINE.join([*told, b""])


def _late() -> ProxyError:
    return ProxyError(408, "Streaming connection open for longer than allowed: Connection will be closed.")


def _stopped() -> ProxyError:
    return unavailable("The proxy stops: no more records are taken.")
