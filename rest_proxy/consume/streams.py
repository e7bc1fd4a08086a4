"""Live streams: records as they are written, for a client that reads at its own pace and may leave at any time."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import NotFound, Retriable
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.readers import ReaderPool, Readers
from rest_proxy.consume.reads import Start, open_partition, out_of_range, partitions_of, resolve_start
from rest_proxy.consume.stream_frames import Frames, StreamPosition
from rest_proxy.errors import ProxyError, partition_not_found, too_many, topic_not_found, unavailable
from rest_proxy.formats.decoding import Decoder

_SLICE_MS = 250
"""How long one read may block: a stream without records notices after this time that it should end."""
_CHUNK_RECORDS = 1000
_CHUNK_BYTES = 256 * 1024
"""Most bytes of keys and values sent at once; the client must have read most of them before more are fetched."""
_TOPIC_CHECK_SECONDS = 2.0
"""How often a stream checks whether its topic still exists and has new partitions."""
_STOPPED = "the proxy stops"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What a stream should contain."""

    topic: str
    partition: int | None
    """None: all of them, including those that are added later."""
    start: Start
    position: StreamPosition | None
    """Where an earlier stream stopped; takes precedence over `start`."""
    isolation_level: str
    max_records: int | None
    until_end: bool


class Streams:
    """All live streams of this proxy, at most `streams.max`; they end together when it stops."""

    def __init__(self, pool: ReaderPool, *, limit: int, heartbeat_ms: int) -> None:
        self._pool = pool
        self._limit = limit
        self._heartbeat_seconds = heartbeat_ms / 1000
        self.count = 0
        """The number of open streams."""

    def stop(self) -> None:
        """End all streams, whose last message says why, and all pages with what they have."""
        self._pool.is_stopping = True

    async def open(self, request: StreamRequest, readers: Readers) -> "Stream":
        """Open a stream, which the caller must close; raises ProxyError."""
        if self._pool.is_stopping:
            raise unavailable(f"No new streams: {_STOPPED}")
        if self.count >= self._limit:
            raise too_many(f"{self._limit} streams are open (streams.max); try again later")

        def on_close() -> None:
            self.count -= 1

        self.count += 1
        stream = Stream(request, readers, on_close=on_close)
        try:
            await readers.check()
            await stream.open()
        except BaseException:
            stream.close()
            raise
        return stream

    async def chunks(
        self, stream: "Stream", frames: Frames, *, decoders: Sequence[Decoder], count: Callable[[int], None]
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a stream, until it ends; `count` is called with the number of records in each chunk."""
        if opening := frames.opening():
            yield opening
        sent_at = time.monotonic()
        try:
            while not (reason := _STOPPED if self._pool.is_stopping else stream.end_reached):
                records = await stream.next_records()
                if records:
                    for decoder in decoders:
                        await decoder.prepare(records)
                    yield await stream.run(frames.records, records)
                    count(len(records))
                    sent_at = time.monotonic()
                elif time.monotonic() - sent_at >= self._heartbeat_seconds:
                    yield frames.heartbeat()
                    sent_at = time.monotonic()
        except ProxyError as error:
            yield frames.ending("error", error)
            return
        yield frames.ending(reason, unavailable(f"The stream ends: {_STOPPED}") if self._pool.is_stopping else None)


class Stream:
    """One stream: its reader, and how much is left to read."""

    def __init__(self, request: StreamRequest, readers: Readers, *, on_close: Callable[[], None]) -> None:
        self._request = request
        self._readers = readers
        self._lease = readers.lease()
        self._on_close = on_close
        self._ends: dict[TopicPartition, int] = {}
        self._left = request.max_records
        self._topic_checked_at = time.monotonic()
        self._is_topic_missing = self._is_closed = False
        self.run = self._lease.run
        """Runs blocking calls on the stream's thread."""

    @property
    def positions(self) -> StreamPosition:
        """The next offset of each partition."""
        return {partition: offset for (_, partition), offset in self._reader.positions.items()}

    @property
    def end_reached(self) -> str:
        """Why the stream is complete; empty while it is not."""
        if self._left is not None and self._left <= 0:
            return "max_records"
        return "end" if self._request.until_end and not self._ends else ""

    async def open(self) -> None:
        """Start reading; raises ProxyError."""
        await self.run(self._open)

    async def next_records(self) -> list[IncomingRecord]:
        """The available records, or none after a moment; raises ProxyError when no more can come."""
        records = await self.run(self._read)
        if self._ends or self._request.until_end:
            records = self._cut_at_end(records)
        if self._left is not None:
            self._left -= len(records)
        return records

    def close(self) -> None:
        """Release the reader; never waits, and may be called again."""
        if not self._is_closed:
            self._is_closed = True
            self._on_close()
            self._lease.close()

    @property
    def _reader(self) -> Reader:
        assert self._lease.reader is not None
        return self._lease.reader

    # --- on the stream's thread ---

    def _open(self) -> None:
        request = self._request
        reader = self._lease.reader = self._readers.create(request.isolation_level)
        if request.partition is None:
            _open_topic(reader, request)
        else:
            open_partition(reader, request.topic, request.partition, _partition_start(request, request.partition))
        if request.until_end:
            ends = {place: reader.known_bounds(place)[1] for place in reader.positions}
            self._ends = {place: end for place, end in ends.items() if reader.positions[place] < end}

    def _read(self) -> list[IncomingRecord]:
        self._readers.check_login()
        count = _CHUNK_RECORDS if self._left is None else min(_CHUNK_RECORDS, self._left)
        try:
            records = self._reader.read(count, timeout_ms=_SLICE_MS, bytes_max=_CHUNK_BYTES)
        except OffsetOutOfRange as error:
            raise out_of_range(self._reader, error) from error
        except (Retriable, NotFound):
            return []  # Either it passes, or the next check of the topic finds that it was deleted.
        if time.monotonic() - self._topic_checked_at >= _TOPIC_CHECK_SECONDS:
            self._check_topic()
        return records

    def _check_topic(self) -> None:
        """Add new partitions; raises ProxyError if the topic was deleted."""
        request, reader = self._request, self._reader
        found = self._readers.current_partitions(request.topic)
        self._topic_checked_at = time.monotonic()
        if found is None:
            return
        # It must be missing twice: a broker that has just started may not know its topics yet.
        if not found and self._is_topic_missing:
            raise topic_not_found(request.topic)
        self._is_topic_missing = not found
        if request.partition is None:
            places = [(request.topic, partition) for partition in found]
            if new := [place for place in places if place not in reader.positions]:
                reader.add(dict.fromkeys(new, 0))

    def _cut_at_end(self, records: list[IncomingRecord]) -> list[IncomingRecord]:
        """The records that existed when the stream was opened; drops partitions whose end is reached."""
        reader = self._reader
        ends = dict(self._ends)
        self._ends = {
            place: end
            for place, end in ends.items()
            if reader.positions[place] < end and not (place in reader.ended and reader.is_at_end(place))
        }
        return [record for record in records if record.offset < ends.get((record.topic, record.partition), -1)]


def _open_topic(reader: Reader, request: StreamRequest) -> None:
    """Start a reader on all partitions of a topic; raises ProxyError if the topic does not have the position."""
    topic, given = request.topic, request.position
    bounds = {number: reader.bounds(topic, number) for number in partitions_of(reader, topic)}
    if given is None:
        positions = resolve_start(reader, bounds, topic, request.start)
    else:
        for number, offset in given.items():
            if number not in bounds:
                raise partition_not_found(topic, number)
            if offset < bounds[number][0]:
                raise out_of_range(reader, OffsetOutOfRange((topic, number), offset))
        # Partitions that were added since then are new to the client: it reads them from their first record.
        positions = {number: given.get(number, low) for number, (low, _) in bounds.items()}
    reader.start({(topic, number): offset for number, offset in positions.items()})


def _partition_start(request: StreamRequest, partition: int) -> Start:
    if request.position is None:
        return request.start
    if list(request.position) != [partition]:
        raise ProxyError(400, f"The position (position or Last-Event-ID) must name partition {partition} and no other")
    return Start(offset=request.position[partition])
