"""Columns become messages that Protobuf itself reads as what they were."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schema_registry.formats import protobuf
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.arrow.protobuf_reading import protobuf_reader
from schema_registry.serdes.arrow.protobuf_writing import ProtobufWriter
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from tests.support.protobuf_columns import EVERYTHING, FLAT, PROTO2, WRAPPERS, in_order, records_of
from tests.support.protobuf_schemas import schemas


def messages(schema: ProtobufSchema, data: list[bytes], indexes: tuple[int, ...] = (0,)) -> list[Any]:
    read: Any = schema.message_class(schema.message_at(indexes).full_name)
    return [read.FromString(record) for record in data]


def assert_written_again(schema: ProtobufSchema, indexes: tuple[int, ...], records: list[bytes]) -> None:
    reader = protobuf_reader(schema, indexes)
    read = reader.read(pa.array([b"skipped", *records])[1:])
    kept = [records[row] for row in read.rows]
    writer = ProtobufWriter(schema.message_at(indexes))
    assert writer.type.equals(reader.type)
    again = writer.write(read.data)
    again.validate(full=True)
    found = reader.read(again)
    assert not found.bad
    assert repr(in_order(found.data.to_pylist())) == repr(in_order(read.data.to_pylist()))
    assert len(kept) == len(again)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("text", "indexes"),
    [(FLAT, (0,)), (EVERYTHING, (0,)), (EVERYTHING, (1,)), (EVERYTHING, (1, 0)), (PROTO2, (0,))],
    ids=["flat", "everything", "second message", "nested message", "proto2"],
)
def test_what_was_read_is_written_again(text: str, indexes: tuple[int, ...], seed: int) -> None:
    schema = protobuf.parse(text)
    assert_written_again(schema, indexes, records_of(schema, indexes, seed))


@given(schemas(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_what_was_read_by_any_schema_is_written_again(text: str, seed: int) -> None:
    try:
        schema = protobuf.parse(text)
        protobuf_reader(schema, (0,))
    except (InvalidSchema, UnusableSchema):
        assume(False)
        raise
    assert_written_again(schema, (0,), records_of(schema, (0,), seed, count=5))


@pytest.mark.parametrize("seed", range(10))
def test_flat_messages_are_written_byte_for_byte_as_protobuf_does(seed: int) -> None:
    schema = protobuf.parse(FLAT)
    records = records_of(schema, (0,), seed)
    read = protobuf_reader(schema, (0,)).read(pa.array(records))
    assert ProtobufWriter(schema.message_at((0,))).write(read.data).to_pylist() == records


@pytest.mark.parametrize("kind", ["Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"])
def test_a_plain_value_becomes_the_message_that_holds_it(kind: str) -> None:
    schema = protobuf.parse(WRAPPERS)
    place = [message.name for message in schema.descriptor.message_type].index(f"{kind}Value")
    records = records_of(schema, (place,), 1)
    read = protobuf_reader(schema, (place,)).read(pa.array(records))
    assert ProtobufWriter(schema.message_at((place,))).write(read.data).to_pylist() == records


LOGICAL = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "confluent/type/decimal.proto";
import "confluent/meta.proto";
message L {
  google.protobuf.Timestamp at = 1;
  google.type.Date day = 2;
  google.type.TimeOfDay time = 3;
  confluent.type.Decimal price = 4 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];
}
"""


@pytest.mark.parametrize(
    ("price", "digits"), [("0.00", 1), ("-1.28", 3), ("9.99", 3), ("10.00", 4), ("-12345678901234567890.12", 22)]
)
def test_dates_times_and_decimals_are_their_messages(price: str, digits: int) -> None:
    schema = protobuf.parse(LOGICAL)
    writer = ProtobufWriter(schema.message_at((0,)))
    value = {
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
        "day": dt.date(1, 2, 3),
        "time": dt.time(23, 59, 58, 7000),
        "price": Decimal(price),
    }
    (message, empty) = messages(schema, writer.write(pa.array([value, {}], writer.type)).to_pylist())
    assert (message.at.seconds, message.at.nanos) == (-1, 999_000_000)
    assert (message.day.year, message.day.month, message.day.day) == (1, 2, 3)
    assert (message.time.hours, message.time.minutes, message.time.seconds) == (23, 59, 58)
    assert message.time.nanos == 7_000_000
    unscaled = int.from_bytes(message.price.value, "big", signed=True)
    assert (Decimal(unscaled).scaleb(-2), message.price.scale) == (Decimal(price), 2)
    assert message.price.precision == digits
    assert empty.ByteSize() == 0


SMALL = """
syntax = "proto3";
message M {
  int32 a = 1; optional int32 b = 2; E e = 3; repeated int32 packed = 4; map<string, int32> m = 5; uint64 u = 6;
  oneof one { string s = 7; bool f = 8; }
}
enum E { ZERO = 0; TWO = 2; }
"""


def test_columns_may_be_missing_and_of_like_types() -> None:
    schema = protobuf.parse(SMALL)
    writer = ProtobufWriter(schema.message_at((0,)))
    rows = pa.StructArray.from_arrays(
        [
            pa.array([1, None], pa.uint8()),
            pa.array(["TWO", None]).dictionary_encode(),
            pa.array([1 << 63, 0], pa.uint64()),
        ],
        names=["a", "e", "u"],
    )
    first, second = messages(schema, writer.write(rows).to_pylist())
    assert (first.a, first.e, first.u, first.HasField("b")) == (1, 2, 1 << 63, False)
    assert second.ByteSize() == 0


@pytest.mark.parametrize(
    ("name", "column", "problem"),
    [
        ("a", pa.array([1 << 31]), "a: 2147483648 is out of the range"),
        ("a", pa.array(["x"]), "a: expected"),
        ("e", pa.array(["THREE"]), "e: the enum E has no symbol 'THREE'"),
        ("packed", pa.array([[1, None]]), "packed: Protobuf has no nulls in arrays"),
        ("packed", pa.array([1]), "packed: expected lists"),
        ("other", pa.array([1]), "the message M has no field other"),
        ("one_0", pa.array([{"x": 1}]), "has no field x"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name(name: str, column: pa.Array, problem: str) -> None:
    writer = ProtobufWriter(protobuf.parse(SMALL).message_at((0,)))
    with pytest.raises(InvalidData, match=problem):
        writer.write(pa.StructArray.from_arrays([column], names=[name]))


def test_required_fields_must_be_there() -> None:
    writer = ProtobufWriter(protobuf.parse(PROTO2).message_at((0,)))
    with pytest.raises(InvalidData, match="b: there are nulls, but the field is required"):
        writer.write(pa.array([{"b": None}], writer.type))
    with pytest.raises(InvalidData, match="b: there is no such column, and the field is required"):
        writer.write(pa.array([{"a": 1}]))
