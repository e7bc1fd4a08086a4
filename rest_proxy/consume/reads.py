"""Pages of a partition, from an offset or a timestamp on, without a consumer instance."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core_broker.client.errors import NotFound
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.readers import Lease, Readers, ResumePoint
from rest_proxy.errors import ProxyError, partition_not_found, topic_not_found

OUT_OF_RANGE = 40002
_SLICE_MS = 250
"""How long one read may block: between reads we notice that the client has left or that the proxy stops."""
_LINGER_MS = 100
"""How long a page that has records waits for more that are known to exist."""
_PATIENCE_SECONDS = 5.0
"""How long a page waits for records that are known to exist, even if the request's time-out is shorter."""
_PEEK_MS = 1000
_CHUNK_RECORDS = 1000
_CHUNK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where reading begins: at most one of the fields is set; the beginning if none is."""

    offset: int | None = None
    timestamp_ms: int | None = None
    is_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What a page should contain."""

    topic: str
    partition: int
    start: Start
    isolation_level: str
    timeout_ms: int
    max_bytes: int
    max_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Records of a partition, and the offset of the next page."""

    records: list[IncomingRecord]
    next_offset: int
    beginning_offset: int
    end_offset: int


class Pages:
    """Reads pages, if possible with the reader that has just read the page before."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def page(self, request: PageRequest, *, is_gone: Callable[[], Awaitable[bool]]) -> Page:
        """The available records, or those that arrive in time; `is_gone` says whether the client has left."""
        await self._readers.check()

        async def is_over() -> bool:
            return self._readers.is_stopping or await is_gone()

        async with self._readers.borrow(_resume_point(request, request.start.offset)) as lease:
            if lease.reader is None:
                await lease.run(self._open, lease, request)
            reader = lease.reader
            assert reader is not None
            records = await _fill(lease, reader, request, is_over)
            if not records and await lease.run(self._readers.current_partitions, request.topic) == []:
                raise topic_not_found(request.topic)
            low, high = reader.known_bounds((request.topic, request.partition))
            position = reader.positions[request.topic, request.partition]
            page = Page(records=records, next_offset=position, beginning_offset=low, end_offset=max(high, position))
            point = _resume_point(request, page.next_offset)
            assert point is not None
            self._readers.give_back(lease, point)
        return page

    def _open(self, lease: Lease, request: PageRequest) -> None:
        lease.reader = self._readers.create(request.isolation_level)
        open_partition(lease.reader, request.topic, request.partition, request.start)


def open_partition(reader: Reader, topic: str, partition: int, start: Start) -> None:
    """Start a reader; raises ProxyError if the partition does not exist or does not hold the offset."""
    if partition not in partitions_of(reader, topic):
        raise partition_not_found(topic, partition)
    place = (topic, partition)
    low, high = reader.bounds(topic, partition)
    position = resolve_start(reader, {partition: (low, high)}, topic, start)[partition]
    if position < low:
        raise out_of_range(reader, OffsetOutOfRange(place, position))
    reader.start({place: position})
    if position > high:
        # With read_committed, `high` is the last stable offset; only a fetch shows whether the log goes on behind it.
        try:
            reader.peek(timeout_ms=_PEEK_MS)
        except OffsetOutOfRange as error:
            raise out_of_range(reader, error) from error


def partitions_of(reader: Reader, topic: str) -> list[int]:
    """The partitions of a topic, or 404."""
    try:
        return reader.partitions_of(topic)
    except NotFound:
        raise topic_not_found(topic) from None


def resolve_start(reader: Reader, bounds: Mapping[int, tuple[int, int]], topic: str, start: Start) -> dict[int, int]:
    """The first offset to read of each partition; the end, if no record has the timestamp or a later one."""
    if start.offset is not None:
        return dict.fromkeys(bounds, start.offset)
    if start.timestamp_ms is None:
        return {partition: high if start.is_end else low for partition, (low, high) in bounds.items()}
    found = reader.offsets_at([(topic, partition) for partition in bounds], start.timestamp_ms)
    return {
        partition: high if found[topic, partition] < 0 else found[topic, partition]
        for partition, (_, high) in bounds.items()
    }


def out_of_range(reader: Reader, error: OffsetOutOfRange) -> ProxyError:
    """The error for an offset that the partition does not hold, with the range that it does."""
    topic, partition = error.place
    low, high = reader.bounds(topic, partition)
    return ProxyError(
        OUT_OF_RANGE,
        f"Offset {error.offset} is out of range: partition {partition} of topic {topic} begins at {low} and ends at"
        f" {high}, which is the next offset to be written",
    )


async def _fill(
    lease: Lease, reader: Reader, request: PageRequest, is_over: Callable[[], Awaitable[bool]]
) -> list[IncomingRecord]:
    """Read records until the page is full, the end is reached, or time is up."""
    place = (request.topic, request.partition)
    records: list[IncomingRecord] = []
    began, size, at_end = time.monotonic(), 0, reader.is_at_end(place)
    while len(records) < request.max_records and size < request.max_bytes:
        waited = time.monotonic() - began
        left_ms = request.timeout_ms - int(waited * 1000)
        if at_end and (records or left_ms <= 0):
            break
        if waited > max(_PATIENCE_SECONDS, request.timeout_ms / 1000):
            break
        # At the end only new records can come: wait for them as long as the request allows, but not once we have some.
        wait_ms = _LINGER_MS if records else min(_SLICE_MS, left_ms) if at_end else _SLICE_MS
        count = min(_CHUNK_RECORDS, request.max_records - len(records))
        more = await lease.run(
            _read, reader, count, wait_ms, min(_CHUNK_BYTES, request.max_bytes - size), is_first=not records
        )
        at_end = reader.is_at_end(place)
        records += more
        size += sum(len(record.key or b"") + len(record.value or b"") for record in more)
        if not more and (records or await is_over()):
            break
    return records


def _read(reader: Reader, count: int, wait_ms: int, bytes_max: int, *, is_first: bool) -> list[IncomingRecord]:
    try:
        return reader.read(count, timeout_ms=wait_ms, bytes_max=bytes_max, at_least_one=is_first)
    except OffsetOutOfRange as error:
        raise out_of_range(reader, error) from error


def _resume_point(request: PageRequest, offset: int | None) -> ResumePoint | None:
    if offset is None:
        return None
    return ResumePoint(
        topic=request.topic, partition=request.partition, offset=offset, isolation_level=request.isolation_level
    )
