"""Documents of JSON Schemas become the same columns as through Connect's converter."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connect.api.errors import DataError
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.json_schema.reading import reading
from connect.converters.json_schema.schemas import to_connect_schema
from schema_registry.formats import json_schema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow.json_schema_reading import json_schema_reader
from schema_registry.serdes.arrow.reading import NOT_FITTING, Read
from schema_registry.serdes.errors import UnusableSchema
from tests.support.arrow_of_connect import arrow_type, arrow_value

CONFIG = JsonSchemaConfig.parse({"schema.registry.url": "http://registry"})
DATA = "org.apache.kafka.connect.data"
PLAIN: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "integer", "connect.type": "int8"},
    {"type": "integer", "connect.type": "int32"},
    {"type": "number", "connect.type": "float32"},
    {"type": "string", "connect.type": "bytes"},
    {"type": "integer", "connect.type": "int32", "title": f"{DATA}.Date"},
    {"type": "integer", "connect.type": "int32", "title": f"{DATA}.Time"},
    {"type": "integer", "connect.type": "int64", "title": f"{DATA}.Timestamp"},
    {"enum": ["a", "b"]},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "default": "nothing"},
    {"type": "integer", "default": 7},
    {"type": "number", "default": 1.5},
    {"type": "boolean", "default": False},
    {"type": "integer", "default": "no number"},
    {"type": "string", "format": "date-time", "maxLength": 3},
    {"$ref": "#/definitions/shared"},
]
LEAVES = st.sampled_from(PLAIN)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "ž", "d e"]), inner, min_size=1).map(
            lambda properties: {"type": "object", "properties": properties}
        ),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda values: {"type": "object", "additionalProperties": values}),
        inner.map(lambda node: {"oneOf": [{"type": "null"}, node]}),
        inner.map(lambda node: {"anyOf": [node]}),
        st.sampled_from(["string", "integer"]).map(lambda type_: {"type": [type_, "null"]}),
    )


NODES = st.recursive(LEAVES, larger, max_leaves=6)
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.0,
        2.5,
        1e300,
        127,
        128,
        2**31,
        2**63,
        2**70,
        86_400_000,
        "",
        "a",
        "é",
        "YWI=",
        "YW=",
        [],
        {},
        [1],
        {"a": 1},
    ]
)


def documents(node: Any) -> st.SearchStrategy[Any]:
    """What a schema describes, mostly."""
    return st.one_of(_right(node), _right(node), _right(node), ODD)


def _right(node: Any) -> st.SearchStrategy[Any]:
    match node:
        case {"properties": properties}:
            return st.fixed_dictionaries({}, optional={name: documents(part) for name, part in properties.items()})
        case {"type": "array", "items": items}:
            return st.lists(documents(items), max_size=3)
        case {"type": "object", "additionalProperties": values}:
            return st.dictionaries(st.sampled_from(["k", "ř", ""]), documents(values), max_size=3)
        case {"oneOf": [_, other]} | {"anyOf": [other]}:
            return st.one_of(st.none(), documents(other))
        case {"type": "integer"}:
            return st.integers(-5, 100_000)
        case {"type": "number"}:
            return st.floats(allow_nan=False, allow_infinity=False)
        case {"type": "boolean"}:
            return st.booleans()
        case _:
            return st.sampled_from(["", "a", "YWI=", "žába", "\u0000"])


@st.composite
def schemas_and_documents(draw: st.DrawFn) -> tuple[JsonSchema, list[bytes]]:
    node = {**draw(NODES), "definitions": {"shared": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    found = draw(st.lists(documents(node), min_size=1, max_size=8))
    return json_schema.parse(json.dumps(node)), [json.dumps(document).encode() for document in found]


def expected(schema: JsonSchema, records: list[bytes]) -> Read:
    made = to_connect_schema(schema, CONFIG)
    read, type_ = reading(made), arrow_type(made)
    values, rows, bad = [], [], []
    for row, record in enumerate(records):
        try:
            value = arrow_value(made, read(record, 0))
            pa.array([value], type=type_)
        except (DataError, *NOT_FITTING) as error:
            bad.append((row, error))
        else:
            values.append(value)
            rows.append(row)
    return Read(pa.array(values, type=type_), rows, bad)  # type: ignore[arg-type]


def assert_same(read: Read, wanted: Read) -> None:
    assert read.data.type.equals(wanted.data.type)
    assert list(read.rows) == list(wanted.rows)
    assert sorted(row for row, _ in read.bad) == [row for row, _ in wanted.bad]
    assert repr(read.data.to_pylist()) == repr(wanted.data.to_pylist())
    read.data.validate(full=True)


@given(schemas_and_documents())
@settings(max_examples=200, deadline=None)
def test_documents_become_what_the_converter_makes_of_them(given_: tuple[JsonSchema, list[bytes]]) -> None:
    schema, records = given_
    try:
        reader = json_schema_reader(schema)
    except UnusableSchema:
        assume(False)
        raise
    assert_same(reader.read(pa.array(records, type=pa.binary())), expected(schema, records))


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b'{"a":1}}', b'{"a":1}{"a":2}', b"\xff", b'{"a":"\xff"}', b'{"a":NaN}', b'{"a":1,"a":2}', b" {} "],
)
def test_what_is_no_json_is_bad_and_the_rest_is_not(record: bytes) -> None:
    schema = json_schema.parse('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    records = [b'{"a":1}', record, b'{"a":3}']
    assert_same(json_schema_reader(schema).read(pa.array(records)), expected(schema, records))


def test_properties_are_in_the_order_that_connect_wrote_into_the_schema() -> None:
    properties = {"b": {"type": "string", "connect.index": 1}, "a": {"type": "string", "connect.index": 0}}
    schema = json_schema.parse(json.dumps({"type": "object", "properties": properties}))
    records = [b'{"a":"1","b":"2"}']
    assert_same(json_schema_reader(schema).read(pa.array(records)), expected(schema, records))


@pytest.mark.parametrize(
    "node",
    [
        True,
        {"type": "object"},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"allOf": [{"type": "string"}]},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "number", "connect.type": "bytes", "title": f"{DATA}.Decimal", "connect.parameters": {"scale": "2"}},
        {"const": 1},
    ],
)
def test_schemas_without_columns_are_told(node: Any) -> None:
    with pytest.raises(UnusableSchema):
        json_schema_reader(json_schema.parse(json.dumps(node)))
