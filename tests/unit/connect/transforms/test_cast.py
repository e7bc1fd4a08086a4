import datetime as dt
import math
from decimal import Decimal

import pytest

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
    OPTIONAL_FLOAT32,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    Value,
    array,
    decimal,
    struct,
)
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink, typed, value_of


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "Must specify at least one field to cast"),
        ("foo:faketype", "Invalid type found in casting spec: faketype"),
        ("foo:array", "does not support casting to ARRAY"),
        ("foo:bytes", "does not support casting to BYTES"),
        ("foo:int8:extra", "Invalid"),
        ("foo:int8,int32", "may only specify a single cast"),
        ("nonsense", "Invalid type found in casting spec: nonsense"),
    ],
)
def test_specs_that_cannot_be_carried_out_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made("Cast$Key", spec=spec)


def test_a_spec_must_be_given() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "spec"'):
        made("Cast$Value")


@pytest.mark.parametrize("schema", [None, STRING])
def test_null_passes_as_it_is(schema: Schema | None) -> None:
    record = sink(schema, None, key_schema=schema, key=None)
    assert made("Cast$Value", spec="foo:int64").apply(record) is record
    assert made("Cast$Key", spec="foo:int64").apply(record) is record


@pytest.mark.parametrize(
    ("target", "value", "schema", "expected"),
    [
        ("int8", 42, INT8, 42),
        ("int16", 42, INT16, 42),
        ("int32", 42, INT32, 42),
        ("int64", 42, INT64, 42),
        ("float32", 42, FLOAT32, 42.0),
        ("FLOAT64", 42, FLOAT64, 42.0),
        ("boolean", 42, BOOLEAN, True),
        ("boolean", 0, BOOLEAN, False),
        ("string", 42, STRING, "42"),
        ("int8", 300, INT8, 44),
    ],
)
def test_whole_values_are_cast(target: str, value: int, schema: Schema, expected: Value) -> None:
    assert typed(made("Cast$Value", spec=target), INT32, value) == (schema, expected)
    assert value_of(made("Cast$Value", spec=target), value) == expected


def test_whole_keys_are_cast() -> None:
    record = changed(made("Cast$Key", spec="int8"), sink(STRING, "v", key_schema=INT32, key=42))
    assert (record.key_schema, record.key, record.value) == (INT8, 42, "v")


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (1.9, "int32", 1),
        (-1.9, "int64", -1),
        (1e20, "int32", 2**31 - 1),
        (1e20, "int8", -1),
        (math.nan, "int64", 0),
        (0.9, "boolean", False),
        (-1.5, "boolean", True),
        (True, "int8", 1),
        (False, "float64", 0.0),
        (True, "string", "true"),
        ("true", "boolean", True),
        ("TRUE", "boolean", True),
        ("yes", "boolean", False),
        ("1", "boolean", False),
        ("42", "int32", 42),
        ("1.5", "float64", 1.5),
        ("0.1", "float32", 0.10000000149011612),
        (1e10, "string", "1.0E10"),
        (1.0, "string", "1.0"),
        (0.0001, "string", "1.0E-4"),
        (Decimal("12.90"), "int32", 12),
        (Decimal("12.90"), "string", "12.90"),
        (Decimal("12.50"), "float64", 12.5),
        (Decimal("0.5"), "boolean", False),
        (b"\xfe\xdc\xba\x98\x76\x54\x32\x10", "string", "/ty6mHZUMhA="),
        (dt.date(1970, 1, 2), "int32", 1),
        (dt.time(0, 0, 0, 1000), "int64", 1),
        (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), "int64", 1000),
        (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), "float64", 1000.0),
        (dt.date(1970, 1, 2), "string", "1970-01-02"),
        (dt.time(1), "string", "01:00:00.000Z"),
        (dt.datetime(1970, 1, 2, 0, 0, 0, 1000, tzinfo=dt.UTC), "string", "1970-01-02T00:00:00.001Z"),
        (dt.datetime(1970, 1, 2, tzinfo=dt.UTC), "string", "1970-01-02"),
        (dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC), "string", "01:00:00.000Z"),
    ],
)
def test_every_kind_of_value_is_cast(value: Value, target: str, expected: Value) -> None:
    result = value_of(made("Cast$Value", spec=f"a:{target}"), {"a": value, "b": 1})
    assert result == {"a": expected, "b": 1}
    assert type(result["a"]) is type(expected)


def test_float32_becomes_the_text_that_tells_it_from_others_of_32_bits() -> None:
    assert typed(made("Cast$Value", spec="string"), FLOAT32, 0.10000000149011612)[1] == "0.1"
    assert typed(made("Cast$Value", spec="string"), FLOAT64, 0.10000000149011612)[1] == "0.10000000149011612"


@pytest.mark.parametrize(
    ("value", "target"), [("abc", "int32"), ("128", "int8"), (" 1", "int64"), ("1.5", "int32"), ("x", "float64")]
)
def test_text_that_is_no_such_number_is_out_of_range(value: str, target: str) -> None:
    with pytest.raises(DataError, match=r"Value \(.*\) was out of range for requested data type"):
        value_of(made("Cast$Value", spec=target), value)


@pytest.mark.parametrize("value", [["foo"], {"a": 1}, b"x"])
def test_what_is_no_number_cannot_become_one(value: Value) -> None:
    with pytest.raises(DataError, match="Unexpected type in Cast transformation"):
        value_of(made("Cast$Value", spec="int8"), value)


def test_lists_cannot_become_text() -> None:
    with pytest.raises(DataError, match="Unexpected type"):
        value_of(made("Cast$Value", spec="string"), ["foo"])
    with pytest.raises(DataError, match="does not support casting from ARRAY"):
        typed(made("Cast$Value", spec="string"), array(STRING), ["foo"])


def test_defaults_are_cast_too() -> None:
    schema, value = typed(made("Cast$Value", spec="int32"), FLOAT32.but(default=-42.125), 42.125)
    assert (schema, value) == (INT32.but(default=-42), 42)


def test_a_whole_cast_keeps_the_name_but_not_that_of_a_logical_type() -> None:
    assert typed(made("Cast$Value", spec="int64"), INT32.but(name="my.Count"), 1)[0] == INT64.but(name="my.Count")
    assert typed(made("Cast$Value", spec="string"), decimal(2, optional=True), Decimal("1.50")) == (
        STRING.as_optional(),
        "1.50",
    )


def test_fields_of_structs_are_cast() -> None:
    spec = (
        "int8:int16,int16:int32,int32:int64,int64:boolean,float32:float64,float64:boolean,boolean:int8,string:int32,"
        "bigdecimal:string,date:string,optional:int32,bytes:string,timestamp:int64,time:int64,none:int8"
    )
    schema = struct(
        {
            "int8": INT8,
            "int16": OPTIONAL_INT16,
            "int32": INT32.but(default=2),
            "int64": INT64,
            "float32": FLOAT32,
            "float64": FLOAT64.but(default=-1.125),
            "boolean": BOOLEAN,
            "string": STRING,
            "bigdecimal": decimal(0),
            "date": DATE,
            "optional": OPTIONAL_FLOAT32,
            "timestamp": TIMESTAMP,
            "time": TIME.as_optional(),
            "bytes": BYTES,
            "kept": TIMESTAMP,
        },
        name="all",
        optional=True,
    )
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    value = {
        "int8": 8,
        "int16": 16,
        "int32": 32,
        "int64": 64,
        "float32": 32.0,
        "float64": -64.0,
        "boolean": True,
        "bigdecimal": Decimal(42),
        "date": dt.date(1970, 1, 2),
        "string": "42",
        "timestamp": moment,
        "bytes": b"\xfe\xdc",
        "kept": moment,
    }
    new_schema, new_value = typed(made("Cast$Value", spec=spec), schema, value)
    assert new_schema == struct(
        {
            "int8": INT16,
            "int16": OPTIONAL_INT32,
            "int32": INT64.but(default=2),
            "int64": BOOLEAN,
            "float32": FLOAT64,
            "float64": BOOLEAN.but(default=True),
            "boolean": INT8,
            "string": INT32,
            "bigdecimal": STRING,
            "date": STRING,
            "optional": OPTIONAL_INT32,
            "timestamp": INT64,
            "time": INT64.as_optional(),
            "bytes": STRING,
            "kept": TIMESTAMP,
        },
        name="all",
        optional=True,
    )
    assert new_value == {
        "int8": 8,
        "int16": 16,
        "int32": 32,
        "int64": True,
        "float32": 32.0,
        "float64": True,
        "boolean": 1,
        "bigdecimal": "42",
        "date": "1970-01-02",
        "string": 42,
        "timestamp": 0,
        "bytes": "/tw=",
        "kept": moment,
    }
    assert value["int64"] == 64, "the record that came is not touched"


def test_without_schema_a_field_that_is_missing_is_added_as_null() -> None:
    assert value_of(made("Cast$Value", spec="a:int8,b:string"), {"b": 1}) == {"a": None, "b": "1"}


@pytest.mark.parametrize(("replaces", "expected"), [("true", "7"), ("false", None)])
def test_null_counts_as_the_default_unless_it_is_kept(replaces: str, expected: str | None) -> None:
    schema = struct({"a": OPTIONAL_INT32.but(default=7)})
    transform = made("Cast$Value", spec="a:string", replace_null_with_default=replaces)
    new_schema, value = typed(transform, schema, {"a": None})
    assert new_schema == struct({"a": STRING.but(optional=True, default="7")})
    assert value == {"a": expected}


def test_what_has_no_fields_cannot_have_them_cast() -> None:
    transform = made("Cast$Value", spec="a:int8")
    with pytest.raises(DataError, match=r"Only Map objects supported in absence of schema for \[cast types\], found"):
        value_of(transform, "text")
    with pytest.raises(DataError, match=r"Only Struct objects supported for \[cast types\]"):
        typed(transform, STRING, "text")


def test_nested_fields_are_cast_by_paths() -> None:
    transform = made("Cast$Value", spec="a.b:string,`c.d`:int8", field_syntax_version="V2")
    schema = struct({"a": struct({"b": INT32, "x": INT32}, optional=True), "c.d": STRING})
    new_schema, value = typed(transform, schema, {"a": {"b": 1, "x": 2}, "c.d": "3"})
    assert new_schema == struct({"a": struct({"b": STRING, "x": INT32}, optional=True), "c.d": INT8})
    assert value == {"a": {"b": "1", "x": 2}, "c.d": 3}
    assert typed(transform, schema, {"a": None, "c.d": "3"})[1] == {"a": None, "c.d": 3}
    assert value_of(transform, {"a": {"b": 1}, "c.d": "3"}) == {"a": {"b": "1"}, "c.d": 3}
    assert value_of(transform, {"c.d": "3"}) == {"c.d": 3}


def test_the_result_has_the_type_that_was_asked_for() -> None:
    assert typed(made("Cast$Value", spec="boolean"), INT64, 1)[0] == Schema(Type.BOOLEAN)
