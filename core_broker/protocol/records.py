"""Record batches, version 2: the only format of records on the wire and on disk.

The broker reads the 61 bytes of the header and passes on the rest unopened. Records are decoded only where their
content matters: offset lookup by time, compaction, coordinators loading their state. Offset and leader epoch are not
covered by the checksum, so a leader sets them without recomputing it.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from crc32c import crc32c

from core_broker.protocol.compression import DECOMPRESSED_BYTES_MAX, Codec, CompressionError, compress, decompress

Buffer = bytes | bytearray | memoryview

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp, max timestamp,
producer id, producer epoch, base sequence, record count"""
HEADER_BYTES: Final = HEADER.size
LENGTH_BYTES: Final = 12
"""Base offset and length: the part of a batch that its length does not include."""
CRC_START: Final = 21
"""The checksum covers everything from the attributes."""
MAGIC_POSITION: Final = 16
MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1

CONTROL_ABORT: Final = 0
CONTROL_COMMIT: Final = 1

_SEQUENCE_COUNT: Final = 2**31
_STAMP: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_LENGTH: Final = struct.Struct(">i")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION: Final = 35
_CONTROL_KEY: Final = struct.Struct(">hh")
_END_MARKER: Final = struct.Struct(">hi")
_RECORD_BYTES_MIN: Final = 7
"""Length, attributes, timestamp delta, offset delta, key length, value length and header count, one byte each."""


class CorruptBatch(ValueError):
    """Bytes that are not a complete and valid record batch."""


class BatchHeader(msgspec.Struct, gc=False):
    """The header of a batch, and its position in the buffer."""

    position: int
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch."""
        return self.length + LENGTH_BYTES

    @property
    def last_offset(self) -> int:
        """Offset of the last record, even if compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_COUNT

    @property
    def codec(self) -> Codec:
        """How the records are compressed; raises CorruptBatch for an unknown codec."""
        try:
            return Codec(self.attributes & CODEC_MASK)
        except ValueError as error:
            raise CorruptBatch(f"unknown codec {self.attributes & CODEC_MASK}") from error

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker, not data."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def uses_log_append_time(self) -> bool:
        """Whether all records have the time of the append, which is in `max_timestamp`."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time after which tombstones may be removed (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_BIT)


class Record(msgspec.Struct, gc=False):
    """One record. An offset of -1 means "the next one" to `build_batch`."""

    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


# -- headers ----------------------------------------------------------------------------------------------------------


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; raises CorruptBatch if the buffer is too short. Its fields are not checked."""
    try:
        return BatchHeader(position, *HEADER.unpack_from(buffer, position))
    except struct.error as error:
        raise CorruptBatch(f"no room for a batch header at byte {position} of {len(buffer)}") from error


def parse_batches(buffer: Buffer) -> list[BatchHeader]:
    """The headers of all batches in a buffer, which must be complete, of magic 2, and fill the buffer exactly."""
    headers = []
    position = 0
    end = len(buffer)
    while position < end:
        header = parse_header(buffer, position)
        if header.magic != MAGIC:
            raise CorruptBatch(f"batch at byte {position} has magic {header.magic}; only {MAGIC} is supported")
        if header.length < HEADER_BYTES - LENGTH_BYTES or header.size > end - position:
            raise CorruptBatch(f"batch at byte {position} claims {header.size} bytes, but {end - position} are left")
        headers.append(header)
        position += header.size
    return headers


def check_crc(buffer: Buffer, header: BatchHeader) -> bool:
    """Whether the checksum of the batch is correct."""
    view = memoryview(buffer)
    return bool(crc32c(view[header.position + CRC_START : header.position + header.size]) == header.crc)


def stamp(buffer: bytearray | memoryview, header: BatchHeader, *, base_offset: int, leader_epoch: int) -> None:
    """Set the offset and leader epoch of a batch in place; the checksum stays valid."""
    _STAMP.pack_into(buffer, header.position, base_offset, header.length, leader_epoch)
    header.base_offset = base_offset
    header.leader_epoch = leader_epoch


# -- reading records --------------------------------------------------------------------------------------------------


def read_records(buffer: Buffer, header: BatchHeader, *, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """All records of a batch; any deviation from the format raises CorruptBatch.

    For batches built by this broker. A batch compressed by a client can have millions of records: use
    `iterate_records`.
    """
    return list(iterate_records(buffer, header, max_bytes=max_bytes))


def iterate_records(
    buffer: Buffer, header: BatchHeader, *, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The records of a batch one by one.

    As strict as `read_records`, but an invalid record raises only when it is reached. A batch that decompresses to more
    than `max_bytes` is rejected before it takes the memory.
    """
    data = _records_section(buffer, header, max_bytes)
    count = header.record_count
    if count < 0 or count * _RECORD_BYTES_MIN > len(data):
        raise CorruptBatch(f"{count} records cannot fit into {len(data)} bytes")
    append_time = header.max_timestamp if header.uses_log_append_time else None
    previous_delta = -1
    position = 0
    for _ in range(count):
        try:
            timestamp_delta, delta, key, value, headers, position = _read_record(data, position)
        except IndexError as error:
            raise CorruptBatch("a record runs past the end of its batch") from error
        if not previous_delta < delta <= header.last_offset_delta:
            raise CorruptBatch(f"offset delta {delta} after {previous_delta}, last is {header.last_offset_delta}")
        previous_delta = delta
        timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
        yield Record(header.base_offset + delta, timestamp, key, value, headers)
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes are left after the last record")


def _records_section(buffer: Buffer, header: BatchHeader, max_bytes: int) -> bytes:
    """The decompressed records after the header."""
    section = memoryview(buffer)[header.position + HEADER_BYTES : header.position + header.size]
    try:
        return decompress(header.codec, section, max_bytes)
    except CompressionError as error:
        raise CorruptBatch(str(error)) from error


_RawRecord = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


def _read_record(data: bytes, position: int) -> _RawRecord:
    """One record: timestamp delta, offset delta, key, value, headers, and the position after it."""
    length, position = _varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise CorruptBatch(f"record of {length} bytes does not fit into the {len(data) - position} left")
    position += 1  # the attributes of a record are unused
    timestamp_delta, position = _varlong(data, position)
    offset_delta, position = _varint(data, position)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    if data[position] == 0:
        headers: tuple[tuple[str, bytes | None], ...] = ()
        position += 1
    else:
        headers, position = _read_headers(data, position, end)
    if position != end:
        raise CorruptBatch(f"record ends at byte {position}, but its length says {end}")
    return timestamp_delta, offset_delta, key, value, headers, position


def _read_headers(data: bytes, position: int, end: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = _varint(data, position)
    if count < 0 or count * 2 > end - position:
        raise CorruptBatch(f"{count} headers cannot fit into {end - position} bytes")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        if key is None:
            raise CorruptBatch("a header has no key")
        headers.append((_text(key), value))
    return tuple(headers), position


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise CorruptBatch("a header key is not UTF-8") from error


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _varint(data, position)
    if length < 0:
        if length != -1:
            raise CorruptBatch(f"length {length} is negative")
        return None, position
    stop = position + length
    if stop > end:
        raise CorruptBatch(f"{length} bytes run past the end of their record")
    return data[position:stop], stop


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag integer of at most 32 bits, and the position after it."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _long_varint(data, position, 32)


def _varlong(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag integer of at most 64 bits, and the position after it."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _long_varint(data, position, 64)


def _long_varint(data: bytes, position: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    while shift < bits:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise CorruptBatch(f"varint before byte {position} has more than {bits} bits")


# -- building batches -------------------------------------------------------------------------------------------------


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
    append_time_ms: int | None = None,
) -> bytearray:
    """Build one batch from records.

    Offsets are absolute and must increase from `base_offset`; -1 means the next one. `last_offset` may be beyond the
    last record (compaction preserves it, even for an empty batch). `delete_horizon_ms` sets the delete horizon
    (KIP-534); `append_time_ms` makes the timestamp type LogAppendTime.
    """
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    section, last_record_offset, max_timestamp = _write_records(records, base_offset, base_timestamp)
    if append_time_ms is not None:
        max_timestamp = append_time_ms
    if last_offset is None:
        last_offset = last_record_offset
    attributes = int(codec)
    attributes |= is_transactional and TRANSACTIONAL_BIT
    attributes |= is_control and CONTROL_BIT
    attributes |= delete_horizon_ms is not None and DELETE_HORIZON_BIT
    attributes |= append_time_ms is not None and LOG_APPEND_TIME_BIT
    batch = bytearray(HEADER_BYTES)
    batch += section if codec is Codec.NONE else compress(codec, section)
    length = len(batch) - LENGTH_BYTES
    last_delta = last_offset - base_offset
    # fmt: off
    HEADER.pack_into(batch, 0, base_offset, length, leader_epoch, MAGIC, 0, attributes, last_delta, base_timestamp,
                     max_timestamp, producer_id, producer_epoch, base_sequence, len(records))
    # fmt: on
    write_crc(batch)
    return batch


def write_crc(batch: bytearray | memoryview) -> None:
    """Recompute the checksum of a single batch, and write it into the batch."""
    _CRC.pack_into(batch, CRC_START - _CRC.size, crc32c(memoryview(batch)[CRC_START:]))


def change_codec(
    buffer: Buffer,
    header: BatchHeader,
    codec: Codec,
    *,
    level: int | None = None,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """The same batch with another codec; the records are not decoded. Raises CorruptBatch."""
    section = compress(codec, _records_section(buffer, header, max_bytes), level)
    batch = bytearray(memoryview(buffer)[header.position : header.position + HEADER_BYTES])
    batch += section
    attributes = header.attributes & ~CODEC_MASK | codec
    _LENGTH.pack_into(batch, LENGTH_BYTES - _LENGTH.size, len(batch) - LENGTH_BYTES)
    _ATTRIBUTES.pack_into(batch, CRC_START, attributes)
    write_crc(batch)
    return batch


def stamp_append_time(batch: bytearray | memoryview, header: BatchHeader, now_ms: int) -> None:
    """Set LogAppendTime in a single batch in place, and recompute its checksum."""
    header.attributes |= LOG_APPEND_TIME_BIT
    header.max_timestamp = now_ms
    _ATTRIBUTES.pack_into(batch, CRC_START, header.attributes)
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_POSITION, now_ms)
    write_crc(batch)


def _write_records(records: Sequence[Record], base_offset: int, base_timestamp: int) -> tuple[bytearray, int, int]:
    """The records section, the last offset and the greatest timestamp."""
    section = bytearray()
    offset = base_offset - 1
    max_timestamp = NO_TIMESTAMP
    for record in records:
        offset, previous = (offset + 1 if record.offset < 0 else record.offset), offset
        if offset <= previous:
            raise ValueError(f"record offset {offset} is not after {previous}")
        timestamp = record.timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        body = _record_body(record, timestamp - base_timestamp, offset - base_offset)
        section += zigzag(len(body))
        section += body
    return section, offset, max_timestamp


def _record_body(record: Record, timestamp_delta: int, offset_delta: int) -> bytearray:
    body = bytearray(1)
    body += zigzag(timestamp_delta)
    body += zigzag(offset_delta)
    _put_bytes(body, record.key)
    _put_bytes(body, record.value)
    body += zigzag(len(record.headers))
    for key, value in record.headers:
        _put_bytes(body, key.encode())
        _put_bytes(body, value)
    return body


def _put_bytes(body: bytearray, data: bytes | None) -> None:
    if data is None:
        body.append(1)  # -1
        return
    body += zigzag(len(data))
    body += data


_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(128))


def zigzag(value: int) -> bytes:
    """A signed integer as Kafka's varint."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# -- transaction markers ----------------------------------------------------------------------------------------------


def end_transaction_marker(
    producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, timestamp_ms: int
) -> bytearray:
    """The control batch that ends a producer's transaction in a partition."""
    key = _CONTROL_KEY.pack(0, CONTROL_COMMIT if commit else CONTROL_ABORT)
    record = Record(0, timestamp_ms, key, _END_MARKER.pack(0, coordinator_epoch))
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )


def control_type(record: Record) -> int:
    """The type of a control record: CONTROL_ABORT, CONTROL_COMMIT or one of the quorum's own."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise CorruptBatch("the key of a control record has no type")
    kind: int = _CONTROL_KEY.unpack_from(record.key)[1]
    return kind


def read_end_marker(record: Record) -> tuple[bool, int] | None:
    """(committed, coordinator epoch) of a transaction marker; None for other control records."""
    kind = control_type(record)
    if kind not in (CONTROL_ABORT, CONTROL_COMMIT):
        return None
    if record.value is None or len(record.value) < _END_MARKER.size:
        raise CorruptBatch("a transaction marker has no coordinator epoch")
    coordinator_epoch: int = _END_MARKER.unpack_from(record.value)[1]
    return kind == CONTROL_COMMIT, coordinator_epoch
