"""Whether a value is what its schema says, as Kafka Connect's schemas and structs decide it."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from connect.api.checking import check, schema_of
from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT8,
    OPTIONAL_INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import DataError
from tests.support.connect_data import Typed, typed_values

INTS_TO_TEXTS = mapping(INT32, STRING)
FLAT = struct({"field": INT32})
WHOLE = struct(
    {"first": INT32, "second": STRING, "array": array(INT32), "map": INTS_TO_TEXTS, "nested": FLAT}, name="whole"
)
GOOD = {"first": 1, "second": "foo", "array": [1, 2], "map": {1: "value"}, "nested": {"field": 12}}
MOMENT = dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC)

FITTING: list[tuple[Schema | None, Any]] = [
    (None, object()),
    (INT8, 127),
    (INT16, -32768),
    (INT32, 1),
    (INT64, 2**63 - 1),
    (FLOAT32, 1.0),
    (FLOAT64, 1.0),
    (BOOLEAN, True),
    (STRING, "a string"),
    (BYTES, b"a byte array"),
    (BYTES, bytearray(b"a byte array")),
    (BYTES, memoryview(b"a byte array")),
    (array(INT32), [1, 2, 3]),
    (INTS_TO_TEXTS, {1: "value"}),
    (WHOLE, GOOD),
    (decimal(2), Decimal("1.56")),
    (DATE, dt.date(2020, 1, 2)),
    (TIME, dt.time(1, 2)),
    (TIMESTAMP, MOMENT),
    (OPTIONAL_INT8, None),
    (array(OPTIONAL_INT8), [1, None]),
    (struct({"a": OPTIONAL_INT8}), {}),
    (struct({"a": INT8.but(default=3)}), {}),
    (struct({"a": INT8.but(default=3)}), {"a": None}),
    (struct({}), {}),
    (Schema(Type.ARRAY), [1, "a", None]),
    (Schema(Type.MAP), {1: "a", "b": None}),
    (INT32.but(name="io.debezium.time.Date"), 18000),
]

UNFITTING: list[tuple[Schema, Any]] = [
    (INT8, "a"),
    (INT8, 128),
    (INT8, True),
    (INT8, 1.0),
    (INT16, 32768),
    (INT32, 2**31),
    (INT64, 2**63),
    (INT64, None),
    (FLOAT32, 1),
    (FLOAT64, True),
    (FLOAT64, Decimal(1)),
    (BOOLEAN, 1),
    (STRING, b"abc"),
    (BYTES, "abc"),
    (BYTES, [1, 2]),
    (array(INT32), ["a", "b", "c"]),
    (array(INT32), [1, 2, "c"]),
    (array(INT32), {1: 2}),
    (array(INT32), [None]),
    (INTS_TO_TEXTS, {"wrong": "value"}),
    (INTS_TO_TEXTS, {1: 2}),
    (INTS_TO_TEXTS, {1: "abc", "wrong": "value"}),
    (INTS_TO_TEXTS, {1: "abc", 2: b"wrong"}),
    (INTS_TO_TEXTS, [(1, "abc")]),
    (FLAT, {"x": 1}),
    (FLAT, {"field": 1, "x": 1}),
    (FLAT, {}),
    (FLAT, [1]),
    (WHOLE, GOOD | {"nested": {"x": 1}}),
    (WHOLE, GOOD | {"nested": {}}),
    (WHOLE, GOOD | {"nested": None}),
    (struct({"a": INT8.but(default=3)}), {"a": "b"}),
    (INT8.but(default=3), None),
    (decimal(2), 156),
    (decimal(2), Decimal("1.5")),
    (decimal(2), Decimal("NaN")),
    (DATE, 1000),
    (DATE, MOMENT),
    (TIME, 1000),
    (TIMESTAMP, 1000),
    (TIMESTAMP, dt.date(2020, 1, 2)),
    (TIMESTAMP, MOMENT.replace(tzinfo=None)),
]


@pytest.mark.parametrize(("schema", "value"), FITTING)
def test_a_value_fits_its_schema(schema: Schema | None, value: Any) -> None:
    check(schema, value)


@pytest.mark.parametrize(("schema", "value"), UNFITTING)
def test_a_value_of_another_kind_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        check(schema, value)


def test_the_error_names_the_field_that_is_null() -> None:
    with pytest.raises(DataError) as caught:
        check(struct({"one": STRING, "two": STRING}), {})

    assert str(caught.value) == 'Invalid value: null used for required field: "one", schema type: STRING'


def test_the_error_names_the_field_that_is_of_another_kind() -> None:
    with pytest.raises(DataError) as caught:
        check(INT8, "12", field="age")

    assert str(caught.value) == 'Invalid object for schema type INT8: str for field: "age"'


def test_the_error_names_a_field_that_the_schema_does_not_have() -> None:
    with pytest.raises(DataError, match="^x is not a valid field name$"):
        check(FLAT, {"field": 1, "x": 1})


def test_a_decimal_of_another_scale_is_refused_with_both_scales() -> None:
    with pytest.raises(DataError, match=r"Schema has scale 2, value has scale 3\."):
        check(decimal(2), Decimal("1.567"))


@given(typed_values())
def test_every_value_of_a_schema_fits_it(typed: Typed) -> None:
    check(*typed)


INFERRED: list[tuple[Any, Schema | None]] = [
    ("text", STRING),
    (True, BOOLEAN),
    (1, INT64),
    (2**63, None),
    (1.5, FLOAT64),
    (b"bytes", BYTES),
    (Decimal("1.50"), decimal(2)),
    (dt.date(2020, 1, 2), DATE),
    (dt.time(1), TIME),
    (MOMENT, TIMESTAMP),
    (None, None),
    (object(), None),
    ([], None),
    ({}, None),
    ([None], None),
    ([object()], None),
    ({object(): object()}, None),
    ([1, 2], array(INT64)),
    ([1, None], array(OPTIONAL_INT64)),
    ([1, "a"], None),
    ([1, True], None),
    ([[1], [2]], array(array(INT64))),
    ({"a": 1}, mapping(STRING, INT64)),
    ({"a": 1, "b": None}, mapping(STRING, OPTIONAL_INT64)),
    ({"a": 1, "b": "c"}, None),
]


@pytest.mark.parametrize(("value", "schema"), INFERRED)
def test_the_schema_of_a_value_is_found_where_its_parts_agree(value: Any, schema: Schema | None) -> None:
    assert schema_of(value) == schema


def test_a_value_that_is_nested_too_deep_is_refused() -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value]

    with pytest.raises(DataError, match="nested deeper"):
        schema_of(value)
