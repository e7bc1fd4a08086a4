from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.fields import (
    ELEMENTS_MAX,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableSince,
    Since,
    Tag,
    Uuid,
    decode,
    encode,
)
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from core_broker.protocol.primitives import ZERO_UUID, DecodeError, read_uvarint, uvarint
from tests.support.messages import MessageFactory, message_classes, stored_classes


class Point(Message):
    x: Int32 = 0
    y: Int32 = 0


class Sample(Message):
    VERSIONS = (0, 3)
    FLEXIBLE_SINCE = 2

    number: Int64 = 7
    name: str = ""
    note: Annotated[str | None, NullableSince(1)] = None
    points: Annotated[list[Point], Since(1)] = []
    blob: Annotated[bytes | None, Since(1), NullableSince(1)] = None
    origin: Annotated[Point | None, Since(2), NullableSince(2)] = None
    label: Annotated[str, Since(2), Tag(0)] = ""
    weights: Annotated[list[Int16], Since(2), Tag(3)] = []
    ids: Annotated[list[Uuid], Since(3)] = []


def test_legacy_layout_is_fixed_size_lengths_without_tags() -> None:
    assert encode(Sample(number=1, name="ab", note="c"), 0) == b"\0\0\0\0\0\0\0\1" + b"\0\2ab" + b"\0\1c"


def test_flexible_layout_is_compact_lengths_and_a_tag_section() -> None:
    data = encode(Sample(number=1, name="ab", points=[Point(1, 2)], label="L"), 2)
    points = b"\2" + b"\0\0\0\1\0\0\0\2\0"
    assert data == b"\0\0\0\0\0\0\0\1" + b"\3ab" + b"\0" + points + b"\0" + b"\xff" + b"\1\0\2\2L"


def test_fields_outside_the_version_are_left_out_and_keep_their_default() -> None:
    sample = Sample(name="n", note="x", points=[Point(1, 2)], label="gone", ids=[bytes(range(16))])
    assert decode(Sample, 0, encode(sample, 0)) == Sample(name="n", note="x")


def test_null_where_it_is_not_allowed_is_an_error() -> None:
    with pytest.raises(DecodeError, match="note must not be null"):
        decode(Sample, 0, b"\0" * 8 + b"\0\0" + b"\xff\xff")


def test_null_is_read_where_it_is_allowed() -> None:
    assert decode(Sample, 1, encode(Sample(note=None), 1)).note is None


def test_default_valued_tagged_fields_do_not_travel() -> None:
    assert encode(Sample(), 2)[-1] == 0


def test_tagged_fields_are_written_in_the_order_of_their_numbers() -> None:
    data = encode(Sample(label="a", weights=[5]), 2)
    assert data.endswith(b"\2" + b"\0\2\2a" + b"\3\3\2\0\5")


def test_unknown_tagged_fields_are_skipped() -> None:
    known = bytes(encode(Sample(name="n"), 2))
    extended = known[:-1] + b"\2" + uvarint(77) + b"\3abc" + uvarint(300) + b"\0"
    assert decode(Sample, 2, extended) == Sample(name="n")


def test_unknown_tagged_fields_of_a_nested_struct_are_skipped() -> None:
    data = b"\0" * 8 + b"\1\0" + b"\2" + b"\0\0\0\1\0\0\0\2" + b"\1\x09\1z" + b"\0\xff\0"
    assert decode(Sample, 2, data).points == [Point(1, 2)]


def test_a_tagged_field_that_is_longer_than_its_size_is_an_error() -> None:
    known = bytes(encode(Sample(), 2))[:-1]
    with pytest.raises(DecodeError, match="tagged field 0"):
        decode(Sample, 2, known + b"\1" + b"\0\1" + b"\5abcd")


def test_a_tagged_field_that_is_shorter_than_its_size_is_an_error() -> None:
    known = bytes(encode(Sample(), 2))[:-1]
    with pytest.raises(DecodeError, match="tagged field 0"):
        decode(Sample, 2, known + b"\1" + b"\0\5" + b"\2abcd")


def test_tagged_field_count_is_checked_against_the_bytes_left() -> None:
    known = bytes(encode(Sample(), 2))[:-1]
    with pytest.raises(DecodeError, match="tagged fields cannot fit"):
        decode(Sample, 2, known + uvarint(0xFFFFFFFF))


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00"])
def test_array_length_is_checked_against_the_bytes_left(length: bytes) -> None:
    with pytest.raises(DecodeError, match="cannot fit"):
        decode(MetadataRequest, 1, length + b"\0\1a")


def test_compact_array_length_of_the_greatest_number_is_an_error() -> None:
    with pytest.raises(DecodeError, match="cannot fit"):
        decode(MetadataRequest, 12, uvarint(0xFFFFFFFF) + b"\0\0\0")


def test_negative_lengths_are_errors() -> None:
    with pytest.raises(DecodeError, match="negative length"):
        decode(MetadataRequest, 1, b"\xff\xff\xff\xfe")


def test_elements_of_one_message_are_limited_in_total() -> None:
    hostile = b"\0\0\0\0" + (ELEMENTS_MAX + 1).to_bytes(4) + b"\0\0" * (ELEMENTS_MAX + 1)
    with pytest.raises(DecodeError, match="too many elements"):
        decode(MetadataRequest, 1, hostile[4:])


def test_strings_must_be_utf8() -> None:
    with pytest.raises(DecodeError, match="MetadataRequest v1"):
        decode(MetadataRequest, 1, b"\0\0\0\1\0\2\xff\xfe")


def test_decoding_starts_at_the_position_given() -> None:
    data = b"header" + encode(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 1)
    assert decode(MetadataRequest, 1, data, 6).topics == [MetadataRequestTopic(name="t")]


@pytest.mark.parametrize("buffer_type", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_read(buffer_type: type[bytes] | type[bytearray] | type[memoryview]) -> None:
    sample = Sample(name="ä", blob=b"\0\1", points=[Point(3, 4)], ids=[bytes(range(16)), ZERO_UUID])
    assert decode(Sample, 3, buffer_type(bytes(encode(sample, 3)))) == sample


def test_values_read_do_not_hold_the_buffer() -> None:
    buffer = bytearray(encode(Sample(name="n", blob=b"xyz"), 3))
    sample = decode(Sample, 3, memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert (sample.name, sample.blob) == ("n", b"xyz")


def test_defaults_of_two_messages_are_not_shared() -> None:
    data = encode(Sample(), 2)
    first, second = decode(Sample, 2, data), decode(Sample, 2, data)
    first.weights.append(1)
    assert second.weights == []


@pytest.mark.parametrize(
    "cls", message_classes() + stored_classes(), ids=lambda cls: f"{cls.__module__}.{cls.__name__}"
)
def test_what_is_written_is_read_back_in_every_version(cls: type[Message]) -> None:
    factory = MessageFactory(seed=7)
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        for _ in range(5):
            message = factory.make(cls, version)
            data = encode(message, version)
            assert decode(cls, version, data) == message
            assert encode(decode(cls, version, data), version) == data


@given(st.integers(0, 0xFFFFFFFF))
def test_unsigned_varints_round_trip(value: int) -> None:
    data = uvarint(value)
    assert read_uvarint(data, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\xff", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x01"])
def test_varints_longer_than_32_bits_are_errors(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_uvarint(data, 0)


class Wide(Message):
    """All fixed kinds side by side, which the codec reads in one call."""

    small: Int8 = 0
    flag: bool = False
    ratio: float = 0.0
    key: Uuid = ZERO_UUID


@given(st.integers(-128, 127), st.booleans(), st.floats(allow_nan=False), st.binary(min_size=16, max_size=16))
def test_runs_of_fixed_fields_round_trip(small: int, flag: bool, ratio: float, key: bytes) -> None:
    wide = Wide(small=small, flag=flag, ratio=ratio, key=key)
    assert decode(Wide, 0, encode(wide, 0)) == wide
    assert msgspec.structs.astuple(wide) == (small, flag, ratio, key)
