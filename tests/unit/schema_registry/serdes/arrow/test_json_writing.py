"""Columns become documents that are read as what they were, and that fit their schema."""

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schema_registry.formats import json_schema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow.json_reading import json_schema_reader
from schema_registry.serdes.arrow.json_writing import JsonWriter
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from schema_registry.serdes.json_schema import JsonCodec
from tests.support.json_columns import DATA, schemas_and_documents


def schema_of(required: tuple[str, ...] = (), **properties: Any) -> JsonSchema:
    return json_schema.parse(json.dumps({"type": "object", "properties": properties, "required": list(required)}))


def written(schema: JsonSchema, values: list[Any]) -> list[Any]:
    writer = JsonWriter(schema)
    data = writer.write(pa.array(values, writer.type)).to_pylist()
    return [JsonCodec(schema).decode(document) for document in data]  # which checks them


@given(schemas_and_documents())
@settings(max_examples=250, deadline=None)
def test_what_was_read_is_written_again(given_: tuple[JsonSchema, list[bytes]]) -> None:
    schema, records = given_
    try:
        reader = json_schema_reader(schema)
    except UnusableSchema:
        assume(False)
        raise
    read = reader.read(pa.array([b"skipped", *records], type=pa.binary())[1:])
    rows = read.data.drop_null()
    assume("inf" not in repr(rows.to_pylist()))  # a number too large for 32 bits, which JSON has none for
    again = JsonWriter(schema).write(rows)
    again.validate(full=True)
    found = reader.read(again)
    assert not found.bad
    assert JsonWriter(schema).type.equals(reader.type)
    assert repr(found.data.to_pylist()) == repr(rows.to_pylist())


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_texts_of_all_kinds_are_json(texts: list[str]) -> None:
    data = JsonWriter(json_schema.parse('{"type": "string"}')).write(pa.array(texts)).to_pylist()
    assert [json.loads(document) for document in data] == texts


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_numbers_keep_all_their_digits(numbers: list[float]) -> None:
    data = JsonWriter(json_schema.parse('{"type": "number"}')).write(pa.array(numbers)).to_pylist()
    assert [float(document) for document in data] == numbers


def test_every_type_is_written() -> None:
    null = {"type": "null"}
    schema = schema_of(
        flag={"type": "boolean"},
        small={"type": "integer", "connect.type": "int8"},
        text={"oneOf": [null, {"type": "string"}]},
        raw={"type": "string", "connect.type": "bytes"},
        colour={"enum": ["red", "green"]},
        day={"type": "integer", "connect.type": "int32", "title": f"{DATA}.Date"},
        time={"type": "integer", "connect.type": "int32", "title": f"{DATA}.Time"},
        at={"oneOf": [null, {"type": "integer", "connect.type": "int64", "title": f"{DATA}.Timestamp"}]},
        tags={"type": "array", "items": {"oneOf": [null, {"type": "string"}]}},
        counts={"type": "object", "additionalProperties": {"type": "integer"}},
        inner={"type": "object", "properties": {"x": {"type": "number"}}},
        absent={"type": "string"},
        often={"type": "integer", "default": 7},
    )
    value = {
        "flag": True,
        "small": -128,
        "text": None,
        "raw": b"\x00\xff",
        "colour": "green",
        "day": dt.date(1970, 1, 5),
        "time": dt.time(0, 0, 1),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
        "tags": ["a", None, '"'],
        "counts": {"a\n": 1, "b": 2},
        "inner": {"x": 1.5},
        "absent": None,
        "often": None,
    }
    expected = {
        "flag": True,
        "small": -128,
        "text": None,
        "raw": "AP8=",
        "colour": "green",
        "day": 4,
        "time": 1000,
        "at": -1,
        "tags": ["a", None, '"'],
        "counts": {"a\n": 1, "b": 2},
        "inner": {"x": 1.5},
        "often": 7,
    }
    empty = {**value, "tags": [], "counts": {}, "absent": "x", "inner": {"x": None}}
    assert written(schema, [value, empty]) == [
        expected,
        {**expected, "tags": [], "counts": {}, "absent": "x", "inner": {}},
    ]


@pytest.mark.parametrize(
    ("node", "column", "problem"),
    [
        ({"type": "integer", "connect.type": "int8"}, pa.array([128]), "a: 128 is out of the range"),
        ({"type": "number"}, pa.array([float("nan")]), "a: nan cannot be written as JSON"),
        ({"type": "string"}, pa.array([1]), "a: expected text"),
        ({"type": "boolean"}, pa.array([1]), "a: expected booleans"),
        ({"type": "array", "items": {"type": "string"}}, pa.array([["a", None]]), "a: there are nulls"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, pa.array([1]), "a: expected maps"),
        ({"type": "string"}, pa.array([None, "x"]), "a: there are nulls, but the property is required"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name(node: Any, column: pa.Array, problem: str) -> None:
    writer = JsonWriter(schema_of(("a",), a=node))
    with pytest.raises(InvalidData, match=problem):
        writer.write(pa.StructArray.from_arrays([column], names=["a"]))


def test_unknown_and_missing_columns_are_refused() -> None:
    writer = JsonWriter(schema_of(("a",), a={"type": "integer"}, b={"type": "integer"}))
    with pytest.raises(InvalidData, match="the schema has no field c"):
        writer.write(pa.array([{"a": 1, "c": 2}]))
    with pytest.raises(InvalidData, match="a: there is no such column, and the property is required"):
        writer.write(pa.array([{"b": 1}]))
    assert writer.write(pa.array([{"a": 1}])).to_pylist() == [b'{"a":1}']
