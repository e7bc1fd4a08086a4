"""Protobuf messages of every kind of field, filled at random but the same each time."""

import random
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from schema_registry.formats import protobuf_builtin
from schema_registry.formats.protobuf import ProtobufSchema

WRAPPERS = Path(protobuf_builtin.folders()["google/protobuf"], "wrappers.proto").read_text("utf-8")
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
    """A number that fits a field."""
    if field.type in UNSIGNED_32:
        return r.choice([0, 1, 2**32 - 1])
    if field.type in UNSIGNED_64:
        return r.choice([0, 1, 2**63, 2**64 - 1])
    if field.type in SIGNED_32:
        return r.choice([0, 1, -5, 100, 2**31 - 1])
    return r.choice([0, 1, -5, 2**63 - 1, 1_700_000_000])


def scalar(field: FieldDescriptor, r: random.Random) -> Any:
    """A plain value that fits a field."""
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
    """One more item of a repeated field."""
    if field.message_type is None:
        items.append(scalar(field, r))
    else:
        part = items.add()
        if depth < 3:
            fill(part, r, depth + 1)


def fill_map(entries: Any, entry: Any, r: random.Random, depth: int) -> None:
    """Some entries of a map."""
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(r.randrange(3)):
        if value.message_type is None:
            entries[scalar(key, r)] = scalar(value, r)
        else:
            part = entries[scalar(key, r)]
            if depth < 3:
                fill(part, r, depth + 1)


def records_of(schema: ProtobufSchema, indexes: tuple[int, ...], seed: int, count: int = 20) -> list[bytes]:
    """Messages of a type."""
    made = []
    for number_ in range(count):
        message = schema.message_class(schema.message_at(indexes).full_name)()
        fill(message, random.Random(seed * 1000 + number_))
        made.append(message.SerializeToString())
    return made


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
