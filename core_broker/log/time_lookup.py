"""Finds records by timestamp, for ListOffsets.

The time index leads near the record, headers lead to its batch, and only that batch is opened.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from core_broker.log.scan import HeaderFields, walk
from core_broker.log.segment import Segment
from core_broker.log.transaction_index import CorruptIndexError
from core_broker.log.validation import OPENED_RECORDS_MAX
from core_broker.protocol.records import LENGTH_BYTES, BatchHeader, CorruptBatch, iterate_records

log = logging.getLogger(__name__)


class TimestampOffset(NamedTuple):
    """A record found by time: its timestamp, its offset and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: Sequence[Segment], timestamp: int, start_offset: int, *, max_bytes: int
) -> TimestampOffset | None:
    """The first record at or after `start_offset` with a timestamp of at least `timestamp`."""
    for segment in segments:
        if segment.size and segment.greatest_timestamp.timestamp >= timestamp:
            found = segment.with_valid_indexes(_search, segment, timestamp, start_offset, max_bytes)
            if found is not None:
                return found
    return None


def find_greatest(segments: Sequence[Segment], start_offset: int, *, max_bytes: int) -> TimestampOffset | None:
    """The first record with the greatest timestamp."""
    filled = [segment for segment in segments if segment.size]
    if not filled:
        return None
    segment = max(filled, key=lambda segment: segment.greatest_timestamp.timestamp)
    greatest = segment.greatest_timestamp
    place = segment.locate(max(greatest.offset, start_offset))
    if place is None or greatest.timestamp < 0:
        return None
    return _first_in_batch(segment, place.position, place.fields, greatest.timestamp, start_offset, max_bytes)


def _search(segment: Segment, timestamp: int, start_offset: int, max_bytes: int) -> TimestampOffset | None:
    entry = segment.times.lookup(timestamp)
    begin = segment.offsets.lookup(max(entry.offset, start_offset)).position
    for position, fields in walk(segment.file, begin, segment.size):
        # A time entry names the batch with its timestamp: a chance to notice a damaged index.
        if entry.timestamp >= 0 and fields[0] <= entry.offset <= fields[0] + fields[6] and fields[8] != entry.timestamp:
            found_text = f"offset {entry.offset} has timestamp {fields[8]}, not {entry.timestamp}"
            raise CorruptIndexError(f"{segment.times.path}: {found_text}")
        if fields[8] < timestamp or fields[0] + fields[6] < start_offset:
            continue
        found = _first_in_batch(segment, position, fields, timestamp, start_offset, max_bytes)
        if found is not None:
            return found
    return None


def _first_in_batch(
    segment: Segment, position: int, fields: HeaderFields, timestamp: int, start_offset: int, max_bytes: int
) -> TimestampOffset | None:
    header = BatchHeader(0, *fields)
    data = segment.file.read(position, fields[1] + LENGTH_BYTES)
    try:
        if header.record_count > OPENED_RECORDS_MAX:
            raise CorruptBatch(f"the batch has {header.record_count} records, too many to search")
        for record in iterate_records(data, header, max_bytes=max_bytes):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    except CorruptBatch as error:
        # According to its header the record is in this batch; its first offset is the best available result.
        log.warning(
            "records of a batch cannot be read",
            extra={"path": str(segment.path), "base_offset": header.base_offset, "reason": str(error)},
        )
        return TimestampOffset(header.max_timestamp, max(header.base_offset, start_offset), header.leader_epoch)
    return None
