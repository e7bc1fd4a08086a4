import datetime as dt
from decimal import Decimal

import pytest

from connect.api.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    STRING,
    TIMESTAMP,
    Schema,
    Value,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink, typed, value_of

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, False),
        (42, 0),
        (1.5, 0.0),
        ("text", ""),
        (Decimal("1.50"), Decimal("0.00")),
        (dt.date(2020, 1, 1), dt.date(1970, 1, 1)),
        (dt.time(1), dt.time()),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), EPOCH),
        ([1, 2], []),
        ({"a": 1}, {}),
        (None, None),
    ],
)
def test_the_zero_of_its_type_masks_a_value(value: Value, expected: Value) -> None:
    masked = value_of(made("MaskField$Value", fields="magic"), {"magic": value, "other": 1})
    assert masked == {"magic": expected, "other": 1}
    assert type(masked["magic"]) is type(expected)


def test_fields_of_structs_are_masked_and_the_schema_stays() -> None:
    schema = struct(
        {"m": INT64, "s": STRING, "t": TIMESTAMP, "l": array(INT32), "p": mapping(STRING, INT32), "d": decimal(2)},
        name="n",
        optional=True,
    )
    value = {"m": 1, "s": "x", "t": dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "l": [1], "p": {"a": 1}, "d": Decimal(1)}
    masked = {"m": 0, "s": "", "t": EPOCH, "l": [], "p": {}, "d": Decimal(0)}
    assert typed(made("MaskField$Value", fields="m,s,t,l,p,d,none"), schema, value) == (schema, masked)


@pytest.mark.parametrize(
    ("schema", "value", "replacement", "expected"),
    [
        (INT8, 1, "300", 44),
        (INT16, 1, "123", 123),
        (INT32, 1, "123.9", 123),
        (INT64, 1, "123", 123),
        (FLOAT32, 1.0, "0.1", 0.10000000149011612),
        (FLOAT64, 1.0, "0.1", 0.1),
        (STRING, "x", " *** ", " *** "),
        (decimal(1), Decimal("1.0"), "12.5", Decimal("12.5")),
    ],
)
def test_a_replacement_masks_numbers_and_text(schema: Schema, value: Value, replacement: str, expected: Value) -> None:
    transform = made("MaskField$Value", fields="f", replacement=replacement)
    assert typed(transform, struct({"f": schema}), {"f": value})[1] == {"f": expected}


@pytest.mark.parametrize("value", [True, dt.date(2020, 1, 1), [1], {"a": 1}, b"x", EPOCH])
def test_a_replacement_cannot_mask_other_values(value: Value) -> None:
    with pytest.raises(DataError, match="with custom replacement"):
        value_of(made("MaskField$Value", fields="f", replacement="123"), {"f": value})


@pytest.mark.parametrize(
    ("value", "replacement"), [(1, "foo"), (1.5, "foo"), (Decimal(1), "foo"), (1, "NaN"), (1, "1e9999")]
)
def test_a_replacement_that_is_no_number_cannot_mask_numbers(value: Value, replacement: str) -> None:
    with pytest.raises(DataError, match="Unable to convert"):
        value_of(made("MaskField$Value", fields="f", replacement=replacement), {"f": value})


def test_bytes_and_structs_cannot_be_masked() -> None:
    with pytest.raises(DataError, match="Cannot mask value of type"):
        typed(made("MaskField$Value", fields="f"), struct({"f": BYTES}), {"f": b"x"})
    with pytest.raises(DataError, match="Cannot mask value of type: struct"):
        typed(made("MaskField$Value", fields="f"), struct({"f": struct({"a": INT32})}), {"f": {"a": 1}})


@pytest.mark.parametrize("schema", [None, struct({"f": INT32})])
def test_null_is_refused(schema: Schema | None) -> None:
    with pytest.raises(DataError, match=r"\[mask fields\], found: null"):
        typed(made("MaskField$Value", fields="f"), schema, None)


def test_without_schema_a_missing_field_is_added_as_null() -> None:
    assert value_of(made("MaskField$Value", fields="f"), {}) == {"f": None}


@pytest.mark.parametrize("options", [{}, {"fields": ""}, {"fields": "a", "replacement": ""}])
def test_options_that_cannot_work_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made("MaskField$Value", **options)


@pytest.mark.parametrize(("replaces", "expected"), [("true", 0), ("false", None)])
def test_null_counts_as_the_default_unless_it_is_kept(replaces: str, expected: int | None) -> None:
    transform = made("MaskField$Value", fields="f", replace_null_with_default=replaces)
    assert typed(transform, struct({"f": OPTIONAL_INT32.but(default=7)}), {"f": None})[1] == {"f": expected}


def test_keys_and_nested_fields_are_masked() -> None:
    transform = made("MaskField$Key", fields="a.b", field_syntax_version="V2", replacement="x")
    schema = struct({"a": struct({"b": STRING, "c": BOOLEAN})})
    record = changed(transform, sink(key_schema=schema, key={"a": {"b": "secret", "c": True}}))
    assert (record.key_schema, record.key) == (schema, {"a": {"b": "x", "c": True}})
