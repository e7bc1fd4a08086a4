"""Pages of a partition: from an offset or a time on, without a consumer instance."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core_broker.client.errors import NotFound
from core_broker.client.reader import OffsetOutOfRange, Reader
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.readers import Lease, Readers, Spot
from rest_proxy.errors import ProxyError, partition_not_found, topic_not_found

OUT_OF_RANGE = 40002
_SLICE_MS = 250
"""How long one read may block: a client that went is noticed, and a proxy that stops does stop, after that."""
_LINGER_MS = 100
"""How long a page that has something waits for more that is known to be there."""
_PATIENCE_SECONDS = 5.0
"""How long records that are known to be there are waited for, whatever the request says."""
_PEEK_MS = 1000
_CHUNK_RECORDS = 1000
_CHUNK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where reading begins; one of them, or else the beginning."""

    offset: int | None = None
    timestamp_ms: int | None = None
    is_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What a page is to hold."""

    topic: str
    partition: int
    start: Start
    isolation_level: str
    timeout_ms: int
    max_bytes: int
    max_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Records of a partition, and where to go on."""

    records: list[IncomingRecord]
    next_offset: int
    beginning_offset: int
    end_offset: int


class Pages:
    """Reads pages, each with the reader that stopped where it begins, if there is one."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def page(self, request: PageRequest, *, is_gone: Callable[[], Awaitable[bool]]) -> Page:
        """The records that are there, or else come in time; `is_gone` tells whether the client still waits."""
        await self._readers.check()

        async def is_over() -> bool:
            return self._readers.is_stopping or await is_gone()

        async with self._readers.borrowed(_spot(request, request.start.offset)) as lease:
            if lease.reader is None:
                await lease.run(self._open, lease, request)
            reader = lease.reader
            assert reader is not None
            records = await _filled(lease, reader, request, is_over)
            if not records and await lease.run(self._readers.partitions_now, request.topic) == []:
                raise topic_not_found(request.topic)
            page = _finished(reader, request, records)
            spot = _spot(request, page.next_offset)
            assert spot is not None
            self._readers.give_back(lease, spot)
        return page

    def _open(self, lease: Lease, request: PageRequest) -> None:
        lease.reader = self._readers.make(request.isolation_level)
        open_partition(lease.reader, request.topic, request.partition, request.start)


def open_partition(reader: Reader, topic: str, partition: int, start: Start) -> None:
    """Let a reader begin; raises ProxyError for a partition that is not there, or does not hold the offset."""
    if partition not in partitions_of(reader, topic):
        raise partition_not_found(topic, partition)
    place = (topic, partition)
    low, high = reader.bounds(topic, partition)
    position = resolved(reader, {partition: (low, high)}, topic, start)[partition]
    if position < low:
        raise out_of_range(reader, OffsetOutOfRange(place, position))
    reader.start({place: position})
    if position > high:
        # It may lie between the last record that is committed and the end: the partition itself must tell.
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


def resolved(reader: Reader, bounds: Mapping[int, tuple[int, int]], topic: str, start: Start) -> dict[int, int]:
    """The first offset to be read of each partition; a time that nothing was written at, or after, is the end."""
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
    """An offset that a partition does not hold, with those that it does."""
    topic, partition = error.place
    low, high = reader.bounds(topic, partition)
    return ProxyError(
        OUT_OF_RANGE,
        f"Offset {error.offset} is out of range: partition {partition} of topic {topic} begins at {low} and ends at"
        f" {high}, which is the next offset to be written",
    )


async def _filled(
    lease: Lease, reader: Reader, request: PageRequest, is_over: Callable[[], Awaitable[bool]]
) -> list[IncomingRecord]:
    """Records until the page is full, the end is reached, or time is over."""
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


def _finished(reader: Reader, request: PageRequest, records: list[IncomingRecord]) -> Page:
    place = (request.topic, request.partition)
    low, high = reader.known_bounds(place)
    position = reader.positions[place]
    return Page(records=records, next_offset=position, beginning_offset=low, end_offset=max(high, position))


def _spot(request: PageRequest, offset: int | None) -> Spot | None:
    if offset is None:
        return None
    return Spot(
        topic=request.topic, partition=request.partition, offset=offset, isolation_level=request.isolation_level
    )
