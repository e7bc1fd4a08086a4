"""Readers and writers of columns by a schema of any format: the same rows, however Arrow holds them."""

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

from schema_registry.formats import avro, json_schema, protobuf
from schema_registry.serdes.arrow.schemas import add_prefix, column_reader, column_writer
from schema_registry.serdes.framing import id_prefix
from schema_registry.serdes.schemas import ParsedSchema

LINE: dict[str, Any] = {"type": "record", "name": "Line", "fields": [{"name": "item", "type": ["null", "string"]}]}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": ["null", "int"]}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "first", "type": ["null", "Line"]},
    ],
}
PROTOBUF = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1; optional string name = 2; optional bytes raw = 3; google.protobuf.Timestamp at = 4;
  repeated string tags = 5; map<string, int32> counts = 6; repeated Line lines = 7; Line first = 8;
}
message Line { optional string item = 1; }
"""
NULL = {"type": "null"}
OBJECT = {"type": "object", "properties": {"item": {"oneOf": [NULL, {"type": "string"}]}}}
JSON = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"oneOf": [NULL, {"type": "string"}]},
        "raw": {"oneOf": [NULL, {"type": "string", "connect.type": "bytes"}]},
        "at": {"oneOf": [NULL, {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {
            "type": "object",
            "additionalProperties": {"oneOf": [NULL, {"type": "integer", "connect.type": "int32"}]},
        },
        "lines": {"type": "array", "items": OBJECT},
        "first": {"oneOf": [NULL, OBJECT]},
    },
}
SCHEMAS: list[ParsedSchema] = [
    avro.parse(json.dumps(AVRO)),
    protobuf.parse(PROTOBUF),
    json_schema.parse(json.dumps(JSON)),
]
LARGE = pa.struct(
    [
        ("id", pa.int32()),
        ("name", pa.large_string()),
        ("raw", pa.large_binary()),
        ("at", pa.timestamp("ns", "UTC")),
        ("tags", pa.large_list(pa.string_view())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("lines", pa.list_(pa.struct([("item", pa.dictionary(pa.int8(), pa.string()))]))),
        ("first", pa.struct([("item", pa.string())])),
    ]
)


def value(number: int) -> dict[str, Any]:
    is_null = number % 3 == 0
    line = {"item": None if number % 4 == 0 else f"item {number}"}
    return {
        "id": number,
        "name": None if is_null else f"name {number}",
        "raw": None if is_null else bytes([number]),
        "at": None if is_null else dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number),
        "tags": [f"tag {number}"] * (number % 3),
        "counts": {"a": number, "b": -number} if number % 2 else {},
        "lines": [line] * (number % 4),
        "first": None if is_null else line,
    }


VALUES = [value(number) for number in range(1, 40)]


def rows_again(schema: ParsedSchema, data: pa.Array) -> list[Any]:
    read = column_reader(schema).read(data)
    assert not read.bad
    found: list[Any] = read.data.to_pylist(maps_as_pydicts="strict")
    return found


@pytest.mark.parametrize("schema", SCHEMAS, ids=["avro", "protobuf", "json"])
def test_rows_are_written_and_read_again(schema: ParsedSchema) -> None:
    writer = column_writer(schema)
    assert rows_again(schema, writer.write(pa.array(VALUES, writer.type))) == VALUES


@pytest.mark.parametrize("schema", SCHEMAS, ids=["avro", "protobuf", "json"])
@pytest.mark.parametrize(("start", "end"), [(0, 1), (1, 5), (7, 39), (3, 3)])
def test_a_slice_of_rows_is_that_of_their_data(schema: ParsedSchema, start: int, end: int) -> None:
    writer = column_writer(schema)
    rows = pa.array(VALUES, writer.type)
    assert writer.write(rows[start:end]).to_pylist() == writer.write(rows).to_pylist()[start:end]


@pytest.mark.parametrize("schema", SCHEMAS, ids=["avro", "protobuf", "json"])
def test_rows_of_like_types_are_the_same_data(schema: ParsedSchema) -> None:
    writer = column_writer(schema)
    parts = [
        pa.array([row[field.name] for row in VALUES], field.type)
        if field.name != "lines"
        else pa.array([row["lines"] for row in VALUES]).cast(field.type)
        for field in LARGE
    ]
    rows = pa.StructArray.from_arrays(parts, fields=list(LARGE))
    assert writer.write(rows).to_pylist() == writer.write(pa.array(VALUES, writer.type)).to_pylist()


def test_data_is_framed_as_serializers_do_it() -> None:
    data = add_prefix(pa.array([b"a", b""], pa.binary()), id_prefix(7))
    assert data.to_pylist() == [id_prefix(7) + b"a", id_prefix(7)]
