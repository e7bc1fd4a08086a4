import pytest

from core_broker.cluster.metadata_records import decode_record, encode_record
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.control import EndTxnMarker
from core_broker.protocol.stored.metadata import FeatureLevelRecord, NoOpRecord, TopicRecord


def test_a_record_is_framed_with_version_kind_and_record_version() -> None:
    assert encode_record(TopicRecord("t", b"i" * 16)) == b"\x01\x02\x00" + b"\x02t" + b"i" * 16 + b"\x00"


def test_a_record_is_read_back_as_it_was() -> None:
    record = FeatureLevelRecord("metadata.version", 30)
    assert decode_record(encode_record(record)) == record


def test_a_record_of_a_kind_from_the_future_is_skipped() -> None:
    assert decode_record(b"\x01\x7f\x00") is None


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x02\x14\x00\x00", b"\x01\x14\x09\x00", b"\x01\x02\x00\x40"])
def test_bytes_that_are_no_record_are_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_record(value)


def test_a_message_that_is_no_metadata_record_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        encode_record(EndTxnMarker(1))
    assert encode_record(NoOpRecord()) == b"\x01\x14\x00\x00"
