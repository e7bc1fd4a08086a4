import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.groups.offsets import CommittedOffset
from core_broker.groups.records import (
    committed_offset,
    decode_record,
    encode_key,
    encode_value,
    group_key,
    group_record,
    offset_key,
    offset_record,
)
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.groups import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)


def test_offset_key_has_kafkas_bytes() -> None:
    assert offset_key("g", "t", 7) == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x07"


def test_group_key_has_kafkas_bytes() -> None:
    assert group_key("g") == b"\x00\x02\x00\x01g"


def test_offset_value_has_kafkas_bytes_in_version_three() -> None:
    _, value = offset_record("g", "t", 7, CommittedOffset(5, 2, "note", 9))
    expected = (3).to_bytes(2) + (5).to_bytes(8) + (2).to_bytes(4) + b"\x00\x04note" + (9).to_bytes(8)
    assert value == expected


@pytest.mark.parametrize(
    "committed,version",
    [
        (CommittedOffset(5), 3),
        (CommittedOffset(5, expires_at_ms=99), 1),
        (CommittedOffset(5, topic_id=b"i" * 16), 4),
    ],
)
def test_offset_value_takes_the_lowest_version_that_holds_it(committed: CommittedOffset, version: int) -> None:
    _, value = offset_record("g", "t", 7, committed)
    assert value is not None
    assert int.from_bytes(value[:2]) == version


def test_bytes_packed_by_hand_are_those_of_the_codec() -> None:
    key, value = offset_record("grüppe", "t", 7, CommittedOffset(5, 2, "nöte", 9))
    assert key == encode_key(OffsetCommitKey("grüppe", "t", 7))
    assert value == encode_value(OffsetCommitValue(5, 2, "nöte", 9), 3)


@given(
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.text(max_size=50),
)
def test_offset_record_reads_back_as_written(group: str, topic: str, partition: int, value: int, note: str) -> None:
    committed = CommittedOffset(value, 3, note, 11, log_offset=42)
    decoded = decode_record(*offset_record(group, topic, partition, committed))
    assert decoded is not None
    assert decoded[0] == OffsetCommitKey(group, topic, partition)
    assert isinstance(decoded[1], OffsetCommitValue)
    assert committed_offset(decoded[1], 42) == committed


def test_group_record_reads_back_as_written() -> None:
    member = MemberMetadata("m", "i", "client", "/host", 60_000, 10_000, b"subscription", b"assignment")
    value = GroupMetadataValue("consumer", 3, "range", "m", 99, [member])
    assert decode_record(*group_record("g", value)) == (GroupMetadataKey("g"), value)


def test_deleted_record_has_no_value() -> None:
    assert decode_record(group_key("g"), None) == (GroupMetadataKey("g"), None)


def test_key_of_the_first_offset_version_is_still_read() -> None:
    key = b"\x00\x00" + offset_key("g", "t", 7)[2:]
    decoded = decode_record(key, None)
    assert decoded is not None
    assert decoded[0].group == "g"  # type: ignore[attr-defined]  # both key versions have it


def test_consumer_group_key_has_its_own_kind() -> None:
    assert encode_key(ConsumerGroupMetadataKey("g"))[:2] == b"\x00\x03"


def test_unknown_kind_is_left_to_later_brokers() -> None:
    assert decode_record(b"\x00\x63something", b"\x00\x00") is None


@pytest.mark.parametrize(
    "key,value", [(b"", None), (b"\x00\x01\x7f", None), (group_key("g"), b""), (group_key("g"), b"\x00\x63")]
)
def test_damaged_record_is_told_apart(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode_record(key, value)
