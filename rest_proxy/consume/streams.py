"""Live streams: records as they come, to a client that reads at its own pace and may leave at any time."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass

from core_broker.client.consumer import Place
from core_broker.client.errors import NotFound, Retriable
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.readers import Readers
from rest_proxy.consume.reads import Start, open_partition, out_of_range, partitions_of, resolved
from rest_proxy.consume.stream_frames import Frames, Positions
from rest_proxy.errors import ProxyError, partition_not_found, too_many, topic_not_found, unavailable
from rest_proxy.formats.decoding import Decoder

_SLICE_MS = 250
"""How long one read may block: the most that a stream without records takes to notice that it shall end."""
_CHUNK_RECORDS = 1000
_CHUNK_BYTES = 256 * 1024
"""Of keys and values, in what is written at once; the client must have taken most of it before more is read."""
_LOOK_SECONDS = 2.0
"""How often a topic is looked at: whether it is still there, and has new partitions."""
_STOPPED = "the proxy stops"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What a stream is to bring."""

    topic: str
    partition: int | None
    """None: all of them, those that the topic gets later included."""
    start: Start
    position: Positions | None
    """Where another stream stopped; it counts more than `start`."""
    isolation_level: str
    max_records: int | None
    until_end: bool


class Streams:
    """All live streams of this proxy, at most `streams.max`; they end together when it stops."""

    def __init__(self, readers: Readers, *, limit: int, heartbeat_ms: int) -> None:
        self._readers = readers
        self._limit = limit
        self._heartbeat_seconds = heartbeat_ms / 1000
        self.count = 0
        """Streams at the moment."""

    def stop(self) -> None:
        """Let all streams end, each with the reason as its last words, and pages with what they have."""
        self._readers.is_stopping = True

    async def opened(self, request: StreamRequest) -> "Stream":
        """A stream that has begun to read, to be closed by its owner; raises ProxyError."""
        if self._readers.is_stopping:
            raise unavailable(f"No stream begins: {_STOPPED}")
        if self.count >= self._limit:
            raise too_many(f"{self._limit} streams are served at the moment (streams.max); try again later")
        self.count += 1
        stream = Stream(request, self._readers, on_close=self._closed)
        try:
            await self._readers.check()
            await stream.open()
        except BaseException:
            stream.close()
            raise
        return stream

    async def chunks(
        self, stream: "Stream", frames: Frames, *, decoders: Sequence[Decoder], count: Callable[[int], None]
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a stream, until it ends; `count` is told how many records they hold."""
        if opening := frames.opening():
            yield opening
        spoke_at = time.monotonic()
        try:
            while not (reason := _STOPPED if self._readers.is_stopping else stream.end_reached):
                records = await stream.next_records()
                if records:
                    for decoder in decoders:
                        await decoder.prepare(records)
                    yield await stream.run(frames.records, records)
                    count(len(records))
                    spoke_at = time.monotonic()
                elif time.monotonic() - spoke_at >= self._heartbeat_seconds:
                    yield frames.heartbeat()
                    spoke_at = time.monotonic()
        except ProxyError as error:
            yield frames.ending("error", error)
            return
        yield frames.ending(reason, unavailable(f"The stream ends: {_STOPPED}") if self._readers.is_stopping else None)

    def _closed(self) -> None:
        self.count -= 1


class Stream:
    """One stream: a reader of its own, and what is left to be read."""

    def __init__(self, request: StreamRequest, readers: Readers, *, on_close: Callable[[], None]) -> None:
        self._request = request
        self._readers = readers
        self._lease = readers.lease()
        self._on_close = on_close
        self._ends: dict[Place, int] = {}
        self._left = request.max_records
        self._looked_at = time.monotonic()
        self._is_missing = self._is_closed = False
        self.run = self._lease.run
        """Runs what takes long on the stream's thread."""

    @property
    def positions(self) -> Positions:
        """The next offset of each partition."""
        return {partition: offset for (_, partition), offset in self._reader.positions.items()}

    @property
    def end_reached(self) -> str:
        """Why the stream has brought all that was asked for; empty while it has not."""
        if self._left is not None and self._left <= 0:
            return "max_records"
        return "end" if self._request.until_end and not self._ends else ""

    async def open(self) -> None:
        """Begin to read; raises ProxyError."""
        await self.run(self._open)

    async def next_records(self) -> list[IncomingRecord]:
        """What is there, or comes within moments; raises ProxyError when nothing can come any more."""
        records = await self.run(self._read)
        if self._ends or self._request.until_end:
            records = self._before_end(records)
        if self._left is not None:
            self._left -= len(records)
        return records

    def close(self) -> None:
        """Free what the stream holds; never waits, and may be called again."""
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
        reader = self._lease.reader = self._readers.make(request.isolation_level)
        if request.partition is None:
            _open_topic(reader, request)
        else:
            open_partition(reader, request.topic, request.partition, _partition_start(request, request.partition))
        if request.until_end:
            ends = {place: reader.known_bounds(place)[1] for place in reader.positions}
            self._ends = {place: end for place, end in ends.items() if reader.positions[place] < end}

    def _read(self) -> list[IncomingRecord]:
        count = _CHUNK_RECORDS if self._left is None else min(_CHUNK_RECORDS, self._left)
        try:
            records = self._reader.read(count, timeout_ms=_SLICE_MS, bytes_max=_CHUNK_BYTES)
        except OffsetOutOfRange as error:
            raise out_of_range(self._reader, error) from error
        except (Retriable, NotFound):
            return []  # It passes, or the next look tells.
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._look()
        return records

    def _look(self) -> None:
        """Notice new partitions, and that the topic is no more."""
        request, reader = self._request, self._reader
        found = self._readers.partitions_now(request.topic)
        self._looked_at = time.monotonic()
        if found is None:
            return
        # Twice: a broker that has just started may not know its topics yet.
        if not found and self._is_missing:
            raise topic_not_found(request.topic)
        self._is_missing = not found
        if request.partition is None:
            places = [(request.topic, partition) for partition in found]
            if new := [place for place in places if place not in reader.positions]:
                reader.add(dict.fromkeys(new, 0))

    def _before_end(self, records: list[IncomingRecord]) -> list[IncomingRecord]:
        """Those of the records that were there when the request came; partitions whose end is reached are done."""
        reader = self._reader
        ends = dict(self._ends)
        self._ends = {
            place: end
            for place, end in ends.items()
            if reader.positions[place] < end and not (place in reader.ended and reader.is_at_end(place))
        }
        return [record for record in records if record.offset < ends.get((record.topic, record.partition), -1)]


def _open_topic(reader: Reader, request: StreamRequest) -> None:
    """Let a reader begin with all partitions of a topic."""
    bounds = {number: reader.bounds(request.topic, number) for number in partitions_of(reader, request.topic)}
    given = request.position
    if given is None:
        positions = resolved(reader, bounds, request.topic, request.start)
    else:
        # Partitions that the topic got since then are new to the client from their first record on.
        positions = {number: given.get(number, low) for number, (low, _) in bounds.items()}
        _check(reader, request.topic, given, bounds)
    reader.start({(request.topic, number): offset for number, offset in positions.items()})


def _check(reader: Reader, topic: str, given: Positions, bounds: Mapping[int, tuple[int, int]]) -> None:
    """Refuse a position that the topic does not have."""
    for number, offset in given.items():
        if number not in bounds:
            raise partition_not_found(topic, number)
        if offset < bounds[number][0]:
            raise out_of_range(reader, OffsetOutOfRange((topic, number), offset))


def _partition_start(request: StreamRequest, partition: int) -> Start:
    if request.position is None:
        return request.start
    if list(request.position) != [partition]:
        raise ProxyError(400, f"The position (position or Last-Event-ID) must be of partition {partition} alone")
    return Start(offset=request.position[partition])
