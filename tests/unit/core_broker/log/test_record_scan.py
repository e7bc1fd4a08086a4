"""The quick look at records must see what the full decoder sees, and never more."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.log.record_scan import RecordBounds, records_section, scan_records
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import CorruptBatch, Record, build_batch, parse_header, read_records

field = st.one_of(st.none(), st.binary(max_size=200))
record = st.builds(
    Record,
    offset=st.just(-1),
    timestamp=st.integers(0, 2**41),
    key=field,
    value=field,
    headers=st.lists(st.tuples(st.text(max_size=5), field), max_size=2).map(tuple),
)


def scan(batch: bytearray) -> list[RecordBounds]:
    header = parse_header(batch)
    return [RecordBounds(*place) for place in scan_records(records_section(memoryview(batch), header), header)]


@given(records=st.lists(record, min_size=1, max_size=10), codec=st.sampled_from(Codec))
def test_scan_sees_what_the_decoder_sees(records: list[Record], codec: Codec) -> None:
    batch = build_batch(records, base_offset=7, codec=codec)
    header = parse_header(batch)
    places = scan(batch)
    expected = read_records(batch, header)
    assert [(7 + place.offset_delta, place.key, place.is_tombstone) for place in places] == [
        (found.offset, found.key, found.value is None) for found in expected
    ]
    assert [header.base_timestamp + place.timestamp_delta for place in places] == [f.timestamp for f in expected]
    assert places[0].start == 0
    assert [place.end for place in places[:-1]] == [place.start for place in places[1:]]


@settings(max_examples=500)
@given(
    records=st.lists(record, min_size=1, max_size=4),
    changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_damaged_records_raise_corrupt_batch_and_nothing_else(
    records: list[Record], changes: list[tuple[int, int]]
) -> None:
    batch = build_batch(records)
    for position, byte in changes:
        batch[61 + position % (len(batch) - 61)] = byte
    try:
        places = scan(batch)
    except CorruptBatch:
        return
    assert all(0 <= place.start < place.end <= len(batch) - 61 for place in places)


def test_compressed_garbage_raises_corrupt_batch() -> None:
    batch = build_batch([Record(-1, 0, b"k", b"v")], codec=Codec.ZSTD)
    batch[61:] = bytes(len(batch) - 61)
    with pytest.raises(CorruptBatch):
        scan(batch)


def test_record_count_greater_than_the_records_raises_corrupt_batch() -> None:
    batch = build_batch([Record(-1, 0, b"k", b"v")])
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(CorruptBatch):
        scan(batch)
