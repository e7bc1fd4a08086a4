"""HeaderFrom, InsertHeader, DropHeaders."""

import datetime as dt

import pytest

from connect.api.data import (
    BOOLEAN,
    DATE,
    INT8,
    INT32,
    OPTIONAL_INT32,
    STRING,
    Schema,
    Value,
    array,
    struct,
)
from connect.api.errors import ConfigError, DataError
from connect.api.record import Header
from tests.support.transforming import changed, made, sink

OLD = Header("inserted", "old", STRING)
SCHEMA = struct({"f1": STRING, "f2": INT32}, name="n", optional=True)


@pytest.mark.parametrize(
    ("operation", "schema", "value"),
    [("move", struct({"f2": INT32}, name="n"), {"f2": 2}), ("copy", SCHEMA, {"f1": "v", "f2": 2})],
)
@pytest.mark.parametrize("side", ["Key", "Value"])
def test_fields_of_structs_go_into_headers(operation: str, schema: Schema, value: Value, side: str) -> None:
    transform = made(f"HeaderFrom${side}", fields="f1", headers="inserted", operation=operation)
    given = {"f1": "v", "f2": 2}
    record = changed(transform, sink(SCHEMA, given, key_schema=SCHEMA, key=given, headers=(OLD,)))
    assert record.headers == (OLD, Header("inserted", "v", STRING))
    changed_side = (record.key_schema, record.key) if side == "Key" else (record.value_schema, record.value)
    assert changed_side == (schema, value)
    assert given == {"f1": "v", "f2": 2}


@pytest.mark.parametrize(("operation", "value"), [("move", {"f3": 3}), ("copy", {"f1": 1, "f2": None, "f3": 3})])
def test_fields_of_maps_go_into_headers_missing_ones_as_null(operation: str, value: Value) -> None:
    transform = made("HeaderFrom$Value", fields="f1,f2,f4", headers="h1,h2,h4", operation=operation)
    record = changed(transform, sink(None, {"f1": 1, "f2": None, "f3": 3}))
    assert record.headers == (Header("h1", 1), Header("h2", None), Header("h4", None))
    assert record.value == value


@pytest.mark.parametrize(
    ("fields", "headers", "added", "rest"),
    [
        ("f1,f1", "h1,h2", [("h1", "v"), ("h2", "v")], {"f2": 2}),
        ("f1,f2", "h,h", [("h", "v"), ("h", 2)], {}),
    ],
)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_one_field_may_go_into_two_headers_and_two_fields_into_headers_of_one_name(
    fields: str, headers: str, added: list[tuple[str, Value]], rest: Value, schema: Schema | None
) -> None:
    transform = made("HeaderFrom$Value", fields=fields, headers=headers, operation="move")
    record = changed(transform, sink(schema, {"f1": "v", "f2": 2}))
    assert [(header.key, header.value) for header in record.headers] == added
    assert record.value == rest


def test_a_field_that_the_schema_does_not_have_is_refused() -> None:
    with pytest.raises(DataError, match="Field does not exist: no"):
        made("HeaderFrom$Value", fields="no", headers="h", operation="copy").apply(sink(SCHEMA, {}))


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_fields_of_null_are_refused(schema: Schema | None) -> None:
    with pytest.raises(DataError, match=r"\[header move\], found: null"):
        made("HeaderFrom$Value", fields="f1", headers="h", operation="move").apply(sink(schema, None))


@pytest.mark.parametrize(("replaces", "expected"), [("true", 7), ("false", None)])
def test_null_counts_as_the_default_unless_it_is_kept(replaces: str, expected: int | None) -> None:
    transform = made("HeaderFrom$Value", fields="a", headers="h", operation="copy", replace_null_with_default=replaces)
    record = changed(transform, sink(struct({"a": OPTIONAL_INT32.but(default=7)}), {"a": None}))
    assert record.headers[0].value == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": "a,b", "headers": "h", "operation": "move"}, "same number of elements"),
        ({"fields": "", "headers": "", "operation": "move"}, "fields"),
        ({"fields": "a", "headers": "h", "operation": "cut"}, "one of move, copy"),
        ({"fields": "a", "headers": "h"}, "operation"),
    ],
)
def test_header_from_needs_options_that_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made("HeaderFrom$Value", **options)


@pytest.mark.parametrize(
    ("literal", "schema", "value"),
    [
        ("1", INT8, 1),
        ("true", BOOLEAN, True),
        ("2020-01-31", DATE, dt.date(2020, 1, 31)),
        ("[1,2]", array(INT8), [1, 2]),
        ("some text", STRING, "some text"),
    ],
)
def test_a_header_is_added_whose_type_its_text_tells(literal: str, schema: Schema, value: Value) -> None:
    record = changed(made("InsertHeader", header="inserted", value_literal=literal), sink(headers=(OLD,)))
    assert record.headers[0] == OLD
    added = record.headers[1]
    assert (added.key, added.value) == ("inserted", value)
    assert added.schema is not None
    assert added.schema.type is schema.type


@pytest.mark.parametrize("options", [{}, {"header": "", "value_literal": "a"}, {"header": "a"}])
def test_a_header_needs_a_name_and_a_value(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made("InsertHeader", **options)


def test_all_headers_of_some_names_are_dropped() -> None:
    headers = (Header("a", 1), Header("b", 2), Header("a", 3), Header("c", 4))
    record = changed(made("DropHeaders", headers="a,c,z"), sink(headers=headers))
    assert record.headers == (Header("b", 2),)
    untouched = sink(headers=(Header("b", 2),))
    assert made("DropHeaders", headers="a").apply(untouched) is untouched
    with pytest.raises(ConfigError):
        made("DropHeaders", headers="")


def test_a_header_may_be_empty_text() -> None:
    record = changed(made("InsertHeader", header="h", value_literal=""), sink(None, 1))
    assert record.headers == (Header("h", "", STRING),)
