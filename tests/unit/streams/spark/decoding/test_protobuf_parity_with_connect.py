"""Protobuf data becomes the same columns as through Connect's converter."""

import random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connect.api.errors import DataError
from connect.converters.protobuf.config import ProtobufConfig
from connect.converters.protobuf.reading import reading
from connect.converters.protobuf.schemas import to_connect_schema
from schema_registry.formats import protobuf
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.arrow.protobuf_reading import protobuf_reader
from schema_registry.serdes.arrow.reading import NOT_FITTING, Read
from schema_registry.serdes.errors import InvalidData, NotFramed, UnusableSchema
from schema_registry.serdes.protobuf import ProtobufCodec
from tests.support.arrow_of_connect import arrow_type, arrow_value
from tests.support.protobuf_schemas import schemas

CONFIG = ProtobufConfig.parse({"schema.registry.url": "http://registry"})
EVERYTHING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "confluent/type/decimal.proto";
import "confluent/meta.proto";
message Order {
  int32 a = 1; sint32 b = 2; uint32 c = 3; fixed32 d = 4; sfixed32 e = 5;
  int64 f = 6; sint64 g = 7; uint64 h = 8; fixed64 i = 9; sfixed64 j = 10;
  float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15;
  Colour colour = 16;
  optional int32 maybe = 17; optional string text = 18; optional Colour shade = 19;
  repeated string tags = 20; repeated int64 numbers = 21; repeated Line lines = 22; repeated Colour colours = 23;
  map<string, int32> counts = 24; map<int32, string> names = 25; map<string, Line> by_name = 26;
  Line line = 27;
  oneof choice { string word = 28; Line other = 29; uint64 big = 30; }
  google.protobuf.Timestamp at = 31;
  google.protobuf.StringValue wrapped = 32;
  google.type.Date day = 33;
  google.type.TimeOfDay time = 34;
  confluent.type.Decimal price = 35 [
    (confluent.field_meta) = {params: [{key: "scale", value: "2"}, {key: "precision", value: "9"}]}
  ];
  int32 small = 36 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}];
  repeated google.protobuf.Timestamp moments = 37;
  oneof second { bool yes = 38; Colour hue = 39; }
}
message Line {
  string item = 1; int32 count = 2; optional double price = 3; message Inner { bool x = 1; } Inner inner = 4;
}
enum Colour { RED = 0; GREEN = 1; BLUE = 5; }
"""
FLAT = """
syntax = "proto3";
message Flat {
  sint64 z = 200; string n = 14; optional string text = 18; int32 a = 1; sint32 b = 2; uint32 c = 3; fixed32 d = 4;
  sfixed32 e = 5; int64 f = 6; sint64 g = 7; uint64 h = 8; fixed64 i = 9; sfixed64 j = 10; float k = 11; double l = 12;
  bool m = 13; bytes o = 15; Colour colour = 16; optional int32 maybe = 17; optional Colour shade = 19;
  optional double price = 20; optional bool yes = 21; optional bytes raw = 22;
}
enum Colour { RED = 0; GREEN = 1; BLUE = 5; }
"""
PROTO2 = """
syntax = "proto2";
message Old {
  optional int32 a = 1 [default = 7]; required string b = 2; repeated int32 c = 3 [packed = true];
  optional Kind kind = 4 [default = TWO]; optional bytes d = 5; optional Old2 e = 6;
  oneof one { int32 f = 7; string g = 8; }
  enum Kind { ONE = 1; TWO = 2; }
}
message Old2 { optional bool x = 1; }
"""
SCALARS: dict[int, Any] = {
    FieldDescriptor.TYPE_DOUBLE: lambda r: r.choice([0.0, -1.5, 1e300, float("inf")]),
    FieldDescriptor.TYPE_FLOAT: lambda r: r.choice([0.0, -1.5, 0.25]),
    FieldDescriptor.TYPE_BOOL: lambda r: r.random() < 0.5,
    FieldDescriptor.TYPE_STRING: lambda r: r.choice(["", "a", "žluťoučký", "x" * 30]),
    FieldDescriptor.TYPE_BYTES: lambda r: r.choice([b"", b"\x01\x02", b"\xff" * 9]),
}
UNSIGNED_32 = (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32)
UNSIGNED_64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
SIGNED_32 = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32)


def number(field: FieldDescriptor, r: random.Random) -> int:
    if field.type in UNSIGNED_32:
        return r.choice([0, 1, 2**32 - 1])
    if field.type in UNSIGNED_64:
        return r.choice([0, 1, 2**63, 2**64 - 1])
    if field.type in SIGNED_32:
        return r.choice([0, 1, -5, 100, 2**31 - 1])
    return r.choice([0, 1, -5, 2**63 - 1, 1_700_000_000])


def scalar(field: FieldDescriptor, r: random.Random) -> Any:
    if field.enum_type is not None:
        return r.choice([value.number for value in field.enum_type.values])
    return SCALARS[field.type](r) if field.type in SCALARS else number(field, r)


def fill(message: Any, r: random.Random, depth: int = 0) -> None:
    """Set some of the fields."""
    for field in message.DESCRIPTOR.fields:
        if r.random() < 0.4 and not field.is_required:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            fill_map(getattr(message, field.name), field.message_type, r, depth)
        elif field.is_repeated:
            for _ in range(r.randrange(3)):
                add(getattr(message, field.name), field, r, depth)
        elif field.message_type is not None:
            part = getattr(message, field.name)
            part.SetInParent()
            if depth < 3:
                fill(part, r, depth + 1)
        else:
            setattr(message, field.name, scalar(field, r))


def add(items: Any, field: FieldDescriptor, r: random.Random, depth: int) -> None:
    if field.message_type is None:
        items.append(scalar(field, r))
    else:
        part = items.add()
        if depth < 3:
            fill(part, r, depth + 1)


def fill_map(entries: Any, entry: Any, r: random.Random, depth: int) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(r.randrange(3)):
        if value.message_type is None:
            entries[scalar(key, r)] = scalar(value, r)
        else:
            part = entries[scalar(key, r)]
            if depth < 3:
                fill(part, r, depth + 1)


def expected(schema: ProtobufSchema, indexes: tuple[int, ...], records: list[bytes]) -> Read:
    message = schema.message_at(indexes)
    made = to_connect_schema(message, CONFIG)
    read, codec = reading(message, made, CONFIG), ProtobufCodec(schema, message=message.full_name)
    type_ = arrow_type(made)
    values, rows, bad = [], [], []
    for row, record in enumerate(records):
        try:
            value = arrow_value(made, read(codec.decode(record)))
            pa.array([value], type=type_)
        except (DataError, InvalidData, *NOT_FITTING) as error:
            bad.append((row, error))
        else:
            values.append(value)
            rows.append(row)
    return Read(pa.array(values, type=type_), rows, bad)  # type: ignore[arg-type]


def in_order(value: Any) -> Any:
    """With the entries of maps in a fixed order, which Protobuf does not have."""
    if isinstance(value, dict):
        return {key: in_order(part) for key, part in value.items()}
    if isinstance(value, list):
        parts = [in_order(part) for part in value]
        is_map = all(
            isinstance(part, tuple) or (isinstance(part, dict) and part.keys() == {"key", "value"}) for part in parts
        )
        return sorted(parts, key=repr) if is_map else parts
    return (value[0], in_order(value[1])) if isinstance(value, tuple) else value


def assert_same(read: Read, wanted: Read) -> None:
    assert read.data.type.equals(wanted.data.type)
    assert list(read.rows) == list(wanted.rows)
    assert sorted(row for row, _ in read.bad) == [row for row, _ in wanted.bad]
    assert repr(in_order(read.data.to_pylist())) == repr(in_order(wanted.data.to_pylist()))
    read.data.validate(full=True)


def records_of(schema: ProtobufSchema, indexes: tuple[int, ...], seed: int, count: int = 20) -> list[bytes]:
    made = []
    for number_ in range(count):
        message = schema.message_class(schema.message_at(indexes).full_name)()
        fill(message, random.Random(seed * 1000 + number_))
        made.append(message.SerializeToString())
    return made


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("text", "indexes"),
    [(FLAT, (0,)), (EVERYTHING, (0,)), (EVERYTHING, (1,)), (EVERYTHING, (1, 0)), (PROTO2, (0,))],
    ids=["flat", "everything", "second message", "nested message", "proto2"],
)
def test_messages_become_what_the_converter_makes_of_them(text: str, indexes: tuple[int, ...], seed: int) -> None:
    schema = protobuf.parse(text)
    records = records_of(schema, indexes, seed)
    assert_same(protobuf_reader(schema, indexes).read(pa.array(records)), expected(schema, indexes, records))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("text", [EVERYTHING, FLAT], ids=["everything", "flat"])
def test_damaged_messages_are_bad_exactly_where_the_converter_says_so(text: str, seed: int) -> None:
    schema = protobuf.parse(text)
    r = random.Random(seed)
    records = [damaged(record, r) for record in records_of(schema, (0,), seed, count=100)]
    assert_same(protobuf_reader(schema, (0,)).read(pa.array(records)), expected(schema, (0,), records))


def damaged(record: bytes, r: random.Random) -> bytes:
    place = r.randrange(len(record) + 1)
    match r.randrange(6):
        case 0:
            return record[:place]
        case 1:
            return record[:place] + r.randbytes(1) + record[place + 1 :]
        case 2:
            return record + record
        case 3:
            return record[place:] + record[:place]
        case 4:
            return record + bytes([0xFA, 0x3E, 2]) + b"hi"
        case _:
            return record


@pytest.mark.parametrize(
    "record",
    [
        b"\x08" + b"\xff" * 9 + b"\x01",
        b"\x08" + b"\xff" * 9 + b"\x03",
        b"\x08" + b"\xff" * 10 + b"\x01",
        b"\x08\x80\x80\x00",
        b"\x10" + b"\xff" * 9 + b"\x01",
        b"\x68\x02",
        b"\x68\x80\x02",
        b"\x72\x02\xff\xfe",
        b"\x72\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x01\x07",
        b"\x88\x00\x01",
        b"\x0d\x01\x00\x00\x00",
        b"",
    ],
)
def test_unusual_numbers_are_what_protobuf_makes_of_them(record: bytes) -> None:
    schema = protobuf.parse(FLAT)
    records = [b"\x08\x01", record, b"\x08\x02"]
    assert_same(protobuf_reader(schema, (0,)).read(pa.array(records)), expected(schema, (0,), records))


@given(schemas(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_messages_of_any_schema_become_what_the_converter_makes_of_them(text: str, seed: int) -> None:
    try:
        schema = protobuf.parse(text)
        reader = protobuf_reader(schema, (0,))
    except (InvalidSchema, UnusableSchema):
        assume(False)
        raise
    records = records_of(schema, (0,), seed, count=5)
    assert_same(reader.read(pa.array(records)), expected(schema, (0,), records))


@pytest.mark.parametrize("kind", ["Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"])
def test_a_message_that_holds_one_value_is_that_value(kind: str) -> None:
    from connect.converters.protobuf.definitions import _wrappers

    schema = protobuf.parse(_wrappers())
    place = [message.name for message in schema.descriptor.message_type].index(f"{kind}Value")
    records = records_of(schema, (place,), 1)
    assert_same(protobuf_reader(schema, (place,)).read(pa.array(records)), expected(schema, (place,), records))


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; message A { A next = 1; }',
        'syntax = "proto3"; message A { }',
        'syntax = "proto3"; message A { map<string, B> x = 1; } message B { repeated A y = 1; }',
        'syntax = "proto2"; message A { optional group G = 1 { optional int32 x = 1; } }',
    ],
)
def test_messages_without_columns_are_told(text: str) -> None:
    with pytest.raises(UnusableSchema):
        protobuf_reader(protobuf.parse(text), (0,))


def test_indexes_that_lead_to_no_message_are_no_framing() -> None:
    with pytest.raises(NotFramed):
        protobuf_reader(protobuf.parse(EVERYTHING), (7,))
