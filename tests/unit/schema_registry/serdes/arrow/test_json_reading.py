"""Many documents at once become the columns that reading one by one makes of them."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings

from schema_registry.formats import json_schema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow.json_columns import column_plan, column_type
from schema_registry.serdes.arrow.json_reading import json_schema_reader
from schema_registry.serdes.arrow.reading import NOT_FITTING, Read
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from schema_registry.serdes.json_values import reader
from tests.support.json_columns import DATA, schemas_and_documents


def expected(schema: JsonSchema, records: list[bytes]) -> Read:
    """What reading documents one by one makes of them."""
    plan = column_plan(schema)
    read, type_ = reader(plan), column_type(plan)
    values, rows, bad = [], [], []
    for row, record in enumerate(records):
        try:
            value = read(record, 0)
            pa.array([value], type=type_)
        except (InvalidData, *NOT_FITTING) as error:
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
def test_many_documents_become_what_each_is_by_itself(given_: tuple[JsonSchema, list[bytes]]) -> None:
    schema, records = given_
    try:
        made = json_schema_reader(schema)
    except UnusableSchema:
        assume(False)
        raise
    assert_same(made.read(pa.array(records, type=pa.binary())), expected(schema, records))


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
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "number", "connect.type": "bytes", "title": f"{DATA}.Decimal", "connect.parameters": {"scale": "2"}},
        {"const": 1},
    ],
)
def test_schemas_without_columns_are_refused(node: Any) -> None:
    with pytest.raises(UnusableSchema):
        json_schema_reader(json_schema.parse(json.dumps(node)))


def test_schemas_that_all_hold_have_the_columns_of_them_together() -> None:
    first = {"type": "object", "properties": {"a": {"type": "integer"}}}
    second = {"properties": {"b": {"type": "string"}}}
    schema = json_schema.parse(json.dumps({"allOf": [first, second]}))
    read = json_schema_reader(schema).read(pa.array([b'{"a":1,"b":"x"}']))
    assert read.data.to_pylist() == [{"a": 1, "b": "x"}]
