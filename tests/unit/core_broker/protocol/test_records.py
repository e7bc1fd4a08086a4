import struct
import warnings

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.compression import Codec
from core_broker.protocol.records import (
    HEADER_BYTES,
    CorruptBatch,
    Record,
    build_batch,
    check_crc,
    control_type,
    end_transaction_marker,
    iterate_records,
    parse_batches,
    parse_header,
    read_end_marker,
    read_records,
    stamp,
    write_crc,
)

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # its import reads files in an old way
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

TIMESTAMPS = st.integers(0, 2**42)
HEADERS = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=20)), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(
        Record,
        timestamp=TIMESTAMPS,
        key=st.none() | st.binary(max_size=200),
        value=st.none() | st.binary(max_size=200),
        headers=HEADERS,
    ),
    min_size=1,
    max_size=20,
)
CODECS = st.sampled_from(list(Codec))
KAFKA_PYTHON_CODECS = st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD])
"""Its Snappy needs a library that is not here; aiokafka covers it."""


def numbered(records: list[Record], base_offset: int = 0) -> list[Record]:
    return [
        Record(base_offset + index, record.timestamp, record.key, record.value, record.headers)
        for index, record in enumerate(records)
    ]


@given(records=RECORDS, codec=CODECS, base_offset=st.integers(0, 2**60))
def test_records_come_back_from_their_batch(records: list[Record], codec: Codec, base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, codec=codec)
    [header] = parse_batches(batch)
    assert check_crc(batch, header)
    assert header.codec is codec
    assert header.record_count == len(records)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert read_records(batch, header) == numbered(records, base_offset)


@given(records=RECORDS, codec=KAFKA_PYTHON_CODECS)
def test_kafka_python_reads_our_batches(records: list[Record], codec: Codec) -> None:
    batch = KafkaPythonBatch(bytes(build_batch(records, codec=codec)))
    assert batch.validate_crc()
    assert [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch] == numbered(records)


@given(records=RECORDS, codec=CODECS)
def test_aiokafka_reads_our_batches(records: list[Record], codec: Codec) -> None:
    batch = AiokafkaBatch(bytes(build_batch(records, codec=codec)))
    assert batch.validate_crc()
    assert [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch] == numbered(records)


def fill(builder, records: list[Record]) -> bytes:  # type: ignore[no-untyped-def]
    for index, record in enumerate(records):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(builder.build())


@given(records=RECORDS, codec=KAFKA_PYTHON_CODECS)
def test_batches_of_kafka_python_are_read(records: list[Record], codec: Codec) -> None:
    batch = fill(KafkaPythonBuilder(2, codec, True, 7, 3, 11, 1 << 20), records)
    [header] = parse_batches(batch)
    assert check_crc(batch, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert header.is_transactional
    assert read_records(batch, header) == numbered(records)


@given(records=RECORDS, codec=CODECS)
def test_batches_of_aiokafka_are_read(records: list[Record], codec: Codec) -> None:
    builder = AiokafkaBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    batch = fill(builder, records)
    [header] = parse_batches(batch)
    assert check_crc(batch, header)
    assert read_records(batch, header) == numbered(records)


def test_uncompressed_batch_equals_kafka_pythons_byte_for_byte() -> None:
    records = [Record(0, 5, b"k", b"v", (("h", None),)), Record(1, 900, None, b"x" * 300)]
    theirs = fill(KafkaPythonBuilder(2, 0, False, -1, -1, -1, 1 << 20), records)
    assert bytes(build_batch(records, leader_epoch=parse_header(theirs).leader_epoch)) == theirs


def test_offset_and_epoch_are_stamped_without_touching_the_checksum() -> None:
    batch = build_batch([Record(value=b"a"), Record(value=b"b")])
    [header] = parse_batches(batch)
    stamp(batch, header, base_offset=1000, leader_epoch=9)
    [stamped] = parse_batches(batch)
    assert check_crc(batch, stamped)
    assert (stamped.base_offset, stamped.last_offset, stamped.leader_epoch) == (1000, 1001, 9)
    assert [record.offset for record in read_records(batch, stamped)] == [1000, 1001]


def test_a_changed_byte_fails_the_checksum() -> None:
    batch = build_batch([Record(value=b"payload")])
    batch[-3] ^= 1
    assert not check_crc(batch, parse_header(batch))


def test_all_batches_of_a_buffer_are_found_with_their_positions() -> None:
    one, two = build_batch([Record(value=b"1")]), build_batch([Record(value=b"22")], base_offset=1)
    headers = parse_batches(one + two)
    assert [(header.position, header.base_offset, header.size) for header in headers] == [
        (0, 0, len(one)),
        (len(one), 1, len(two)),
    ]


@pytest.mark.parametrize("length", [-1, 0, 48, 49 + 1000, 2**31 - 1])
def test_a_batch_length_that_cannot_be_is_refused(length: int) -> None:
    batch = build_batch([Record(value=b"1")])
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptBatch, match="claims"):
        parse_batches(batch)


def test_half_a_header_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="no room"):
        parse_batches(build_batch([Record(value=b"1")])[:40])


def test_old_magic_is_refused() -> None:
    batch = build_batch([Record(value=b"1")])
    batch[16] = 1
    with pytest.raises(CorruptBatch, match="magic 1"):
        parse_batches(batch)


def test_records_of_log_append_time_all_carry_it() -> None:
    batch = build_batch([Record(timestamp=5), Record(timestamp=6)], append_time_ms=1234)
    [header] = parse_batches(batch)
    assert header.uses_log_append_time
    assert [record.timestamp for record in read_records(batch, header)] == [1234, 1234]


def test_timestamps_survive_a_delete_horizon() -> None:
    records = [Record(3, 500, b"k", None), Record(9, 700, b"l", None)]
    batch = build_batch(records, base_offset=1, last_offset=12, delete_horizon_ms=99_000)
    [header] = parse_batches(batch)
    assert header.has_delete_horizon
    assert (header.base_timestamp, header.max_timestamp) == (99_000, 700)
    assert (header.base_offset, header.last_offset, header.record_count) == (1, 12, 2)
    assert read_records(batch, header) == records


def test_an_empty_batch_keeps_its_offsets_and_producer() -> None:
    batch = build_batch([], base_offset=10, last_offset=14, producer_id=3, producer_epoch=1, base_sequence=0)
    [header] = parse_batches(batch)
    assert (header.base_offset, header.last_offset, header.last_sequence, header.record_count) == (10, 14, 4, 0)
    assert read_records(batch, header) == []


def test_sequences_wrap_to_zero() -> None:
    batch = build_batch([Record(), Record(), Record()], producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert parse_header(batch).last_sequence == 0


def test_offsets_that_do_not_rise_are_refused_when_building() -> None:
    with pytest.raises(ValueError, match="is not after"):
        build_batch([Record(5), Record(5)])


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_marker_says_how_it_ended(commit: bool) -> None:
    batch = end_transaction_marker(77, 4, commit=commit, coordinator_epoch=12, timestamp_ms=1000)
    [header] = parse_batches(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 4, -1)
    [record] = read_records(batch, header)
    assert read_end_marker(record) == (commit, 12)
    assert KafkaPythonBatch(bytes(batch)).is_control_batch


def test_other_control_records_are_no_end_marker() -> None:
    record = Record(0, 0, struct.pack(">hh", 0, 2), b"")
    assert control_type(record) == 2
    assert read_end_marker(record) is None


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_control_record_without_a_type_is_refused(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read_end_marker(Record(0, 0, key, b""))


def test_marker_without_a_coordinator_epoch_is_refused() -> None:
    with pytest.raises(CorruptBatch):
        read_end_marker(Record(0, 0, struct.pack(">hh", 0, 1), b"\x00"))


def with_count(batch: bytearray, count: int, last_delta: int | None = None) -> bytearray:
    struct.pack_into(">i", batch, 57, count)
    if last_delta is not None:
        struct.pack_into(">i", batch, 23, last_delta)
    write_crc(batch)
    return batch


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [-1, 0, 1, 3, 100, 2**31 - 1])
def test_a_record_count_that_lies_is_refused(codec: Codec, count: int) -> None:
    batch = with_count(build_batch([Record(value=b"a"), Record(value=b"b")], codec=codec), count, max(count - 1, 0))
    with pytest.raises(CorruptBatch):
        read_records(batch, parse_header(batch))


def test_an_unknown_codec_is_refused() -> None:
    batch = build_batch([Record(value=b"a")])
    batch[22] |= 7
    with pytest.raises(CorruptBatch, match="unknown codec 7"):
        read_records(batch, parse_header(batch))


def test_a_bomb_is_refused_at_the_cap() -> None:
    batch = build_batch([Record(value=bytes(1_000_000))], codec=Codec.ZSTD)
    assert len(batch) < 1000
    with pytest.raises(CorruptBatch, match="more than 500000 bytes"):
        read_records(batch, parse_header(batch), max_bytes=500_000)


def test_records_are_read_one_by_one_until_the_broken_one() -> None:
    batch = build_batch([Record(value=b"good"), Record(value=b"bad!")])
    batch[-8] = 0xFF
    records = iterate_records(batch, parse_header(batch))
    assert next(records).value == b"good"
    with pytest.raises(CorruptBatch):
        next(records)


@given(records=RECORDS, codec=CODECS, position=st.integers(HEADER_BYTES, 10_000), flip=st.integers(1, 255))
def test_flipped_bytes_raise_nothing_but_corrupt_batch(
    records: list[Record], codec: Codec, position: int, flip: int
) -> None:
    batch = build_batch(records, codec=codec)
    batch[HEADER_BYTES + position % (len(batch) - HEADER_BYTES)] ^= flip
    try:
        read_records(batch, parse_header(batch), max_bytes=1_000_000)
    except CorruptBatch:
        pass


@given(section=st.binary(max_size=100), count=st.integers(-5, 50))
def test_random_records_sections_raise_nothing_but_corrupt_batch(section: bytes, count: int) -> None:
    batch = build_batch([Record()])[:HEADER_BYTES] + section
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    with_count(batch, count, max(count - 1, 0))
    try:
        read_records(batch, parse_header(batch))
    except CorruptBatch:
        pass


@given(garbage=st.binary(max_size=300))
def test_random_bytes_are_no_batches(garbage: bytes) -> None:
    try:
        parse_batches(garbage)
    except CorruptBatch:
        pass
