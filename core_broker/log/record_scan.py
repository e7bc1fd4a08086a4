"""A fast scan of the records of a batch: the bounds of each, its key, and whether it is a tombstone.

Compaction reads every record twice but changes few, so values and headers are not decoded, and kept records are copied
as bytes. The varints are decoded inline: a call for each would double the cost.
"""

from collections.abc import Iterator
from typing import NamedTuple

from core_broker.protocol.compression import DECOMPRESSED_BYTES_MAX, CompressionError, decompress
from core_broker.protocol.records import HEADER_BYTES, BatchHeader, CorruptBatch

_VARINT_BYTES_MAX = 10


class RecordBounds(NamedTuple):
    """One record in the decompressed section of its batch."""

    start: int
    end: int
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    is_tombstone: bool


def records_section(batch: memoryview, header: BatchHeader) -> bytes:
    """The records of a batch, decompressed within limits; raises CorruptBatch."""
    try:
        return decompress(header.codec, batch[HEADER_BYTES:], DECOMPRESSED_BYTES_MAX)
    except CompressionError as error:
        raise CorruptBatch(str(error)) from error


def scan_records(section: bytes, header: BatchHeader) -> Iterator[tuple[int, int, int, int, bytes | None, bool]]:
    """The records of a section as plain tuples with the fields of `RecordBounds`; may raise CorruptBatch midway."""
    position, previous_delta = 0, -1
    try:
        for _ in range(header.record_count):
            start = position
            byte = section[position]
            if byte < 0x80:
                length, position = byte, position + 1
            else:
                length, position = _varint(section, position)
            end = position + (length >> 1)
            position += 1  # the attributes of a record are unused
            byte = section[position]
            if byte < 0x80:
                timestamp_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                raw, position = _varint(section, position)
                timestamp_delta = (raw >> 1) ^ -(raw & 1)
            byte = section[position]
            if byte < 0x80:
                offset_delta, position = byte >> 1, position + 1
            else:
                raw, position = _varint(section, position)
                offset_delta = raw >> 1
            byte = section[position]
            if byte < 0x80:
                raw, position = byte, position + 1
            else:
                raw, position = _varint(section, position)
            if raw & 1:  # -1: no key
                key = None
            else:
                key = section[position : position + (raw >> 1)]
                position += raw >> 1
            is_tombstone = section[position] == 1  # -1: no value
            if position >= end or end > len(section) or not previous_delta < offset_delta <= header.last_offset_delta:
                raise CorruptBatch(f"the record at byte {start} of the batch at offset {header.base_offset} is invalid")
            yield start, end, offset_delta, timestamp_delta, key, is_tombstone
            position, previous_delta = end, offset_delta
    except IndexError as error:
        raise CorruptBatch(f"the records of the batch at offset {header.base_offset} are truncated") from error
    if position != len(section):
        extra = len(section) - position
        raise CorruptBatch(f"{extra} extra bytes after the records of the batch at offset {header.base_offset}")


def _varint(section: bytes, position: int) -> tuple[int, int]:
    """A varint of more than one byte, still zigzag-encoded, and the position after it."""
    value = shift = 0
    for index in range(position, position + _VARINT_BYTES_MAX):
        byte = section[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index + 1
        shift += 7
    raise CorruptBatch(f"the varint at byte {position} is too long")
