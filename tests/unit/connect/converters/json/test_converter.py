"""JSON records with and without schemas, as Kafka Connect's JsonConverter reads and writes them."""

import datetime as dt
import json
import struct as binary
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

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
    OPTIONAL_BOOLEAN,
    OPTIONAL_STRING,
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
from connect.api.errors import ConfigError, DataError
from connect.converters.json.converter import JsonConverter
from tests.support.connect_data import Typed, typed_values

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DAY_10000 = dt.date(1997, 5, 19)
MOMENT_42 = dt.datetime(1970, 1, 1, 0, 0, 0, 42000, tzinfo=dt.UTC)
MOMENT_4E9 = dt.datetime(1970, 2, 16, 7, 6, 40, tzinfo=dt.UTC)
ENVELOPE_ERROR = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields.'
    " If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)


def with_schemas(**options: str) -> JsonConverter:
    return JsonConverter({name.replace("_", "."): value for name, value in options.items()}, is_key=False)


def without_schemas(**options: str) -> JsonConverter:
    return with_schemas(schemas_enable="false", **options)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": f"org.apache.kafka.connect.data.{name}", "version": 1, **more}


def decimal_json(scale: int, **more: Any) -> dict[str, Any]:
    return logical("bytes", "Decimal", parameters={"scale": str(scale)}, **more)


def envelope(schema: Any, payload: str) -> bytes:
    return f'{{ "schema": {json.dumps(schema)}, "payload": {payload} }}'.encode()


BASE64, NUMERIC = with_schemas(), with_schemas(decimal_format="NUMERIC")
STRUCT_JSON = {
    "type": "struct",
    "fields": [{"field": "optional", "type": "string", "optional": True}, {"field": "required", "type": "string"}],
}
STRUCT = struct({"optional": OPTIONAL_STRING, "required": STRING})
AMOUNT = Decimal("1.56")
OPTIONAL_DECIMAL = decimal(2, optional=True)

READ: list[tuple[Any, str, Schema | None, Any]] = [
    ({"type": "boolean"}, "true", BOOLEAN, True),
    ({"type": "boolean"}, "false", BOOLEAN, False),
    ({"type": "boolean", "optional": True}, "null", OPTIONAL_BOOLEAN, None),
    ({"type": "boolean", "default": True}, "null", BOOLEAN.but(default=True), True),
    (
        {"type": "boolean", "optional": False, "name": "n", "version": 2, "doc": "d", "parameters": {"foo": "bar"}},
        "true",
        BOOLEAN.but(name="n", version=2, doc="d", parameters={"foo": "bar"}),
        True,
    ),
    ({"type": "int8"}, "12", INT8, 12),
    ({"type": "int16"}, "12", INT16, 12),
    ({"type": "int32"}, "12", INT32, 12),
    ({"type": "int64"}, "4398046511104", INT64, 4398046511104),
    ({"type": "float"}, "12.34", FLOAT32, 12.34),
    ({"type": "double"}, "12.34", FLOAT64, 12.34),
    ({"type": "double"}, "12", FLOAT64, 12.0),
    ({"type": "bytes"}, '"dGVzdC1zdHJpbmc="', BYTES, b"test-string"),
    ({"type": "string"}, '"foo-bar-baz"', STRING, "foo-bar-baz"),
    ({"type": "array", "items": {"type": "int32"}}, "[1, 2, 3]", array(INT32), [1, 2, 3]),
    (
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}},
        '{"key1": 12, "key2": 15}',
        mapping(STRING, INT32),
        {"key1": 12, "key2": 15},
    ),
    (
        {"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}},
        "[[1, 12], [2, 15]]",
        mapping(INT32, INT32),
        {1: 12, 2: 15},
    ),
    (STRUCT_JSON, '{"required": "r"}', STRUCT, {"required": "r"}),
    (STRUCT_JSON, '{"required": "r", "optional": null, "extra": [1]}', STRUCT, {"required": "r", "optional": None}),
    (None, "null", None, None),
    (None, "true", None, True),
    (None, "12", None, 12),
    (None, "12.24", None, 12.24),
    (None, '"a string"', None, "a string"),
    (None, '[1, "2", 3]', None, [1, "2", 3]),
    (None, '{"field1": 1, "field2": {"a": null}}', None, {"field1": 1, "field2": {"a": None}}),
    (decimal_json(2), '"AJw="', decimal(2), AMOUNT),
    (decimal_json(2), '"\\u0041Jw="', decimal(2), AMOUNT),
    (decimal_json(2, optional=True), "null", OPTIONAL_DECIMAL, None),
    (decimal_json(2, default="AJw="), "null", decimal(2).but(default=AMOUNT), AMOUNT),
    (
        decimal_json(2, optional=True, default="AJw="),
        "null",
        decimal(2, optional=True).but(default=AMOUNT),
        AMOUNT,
    ),
    (decimal_json(2), "1.56", decimal(2), AMOUNT),
    (decimal_json(4), "1.5600", decimal(4), Decimal("1.5600")),
    (decimal_json(2), "1.5", decimal(2), Decimal("1.50")),
    (decimal_json(17), "1.23456789123456789", decimal(17), Decimal("1.23456789123456789")),
    (logical("int32", "Date"), "10000", DATE, DAY_10000),
    (logical("int32", "Date", optional=True), "null", DATE.as_optional(), None),
    (logical("int32", "Date", default=10000), "null", DATE.but(default=DAY_10000), DAY_10000),
    (logical("int32", "Time"), "14400000", TIME, dt.time(4)),
    (logical("int32", "Time", default=0), "null", TIME.but(default=dt.time()), dt.time()),
    (logical("int64", "Timestamp"), "4000000000", TIMESTAMP, MOMENT_4E9),
    (logical("int64", "Timestamp", default=42), "null", TIMESTAMP.but(default=MOMENT_42), MOMENT_42),
    ({"type": "int32", "name": "io.debezium.time.Date"}, "5", INT32.but(name="io.debezium.time.Date"), 5),
]

WRITTEN: list[tuple[Schema | None, Any, Any, Any]] = [
    (BOOLEAN, True, {"type": "boolean", "optional": False}, True),
    (OPTIONAL_BOOLEAN, None, {"type": "boolean", "optional": True}, None),
    (BOOLEAN.but(default=True), None, {"type": "boolean", "optional": False, "default": True}, True),
    (
        BOOLEAN.but(name="n", version=3, doc="d", parameters={"foo": "bar"}),
        True,
        {"type": "boolean", "optional": False, "name": "n", "version": 3, "doc": "d", "parameters": {"foo": "bar"}},
        True,
    ),
    (INT8, 12, {"type": "int8", "optional": False}, 12),
    (INT16, 12, {"type": "int16", "optional": False}, 12),
    (INT32, 12, {"type": "int32", "optional": False}, 12),
    (INT64, 4398046511104, {"type": "int64", "optional": False}, 4398046511104),
    (FLOAT32, 12.34000015258789, {"type": "float", "optional": False}, 12.34),
    (FLOAT64, 12.34, {"type": "double", "optional": False}, 12.34),
    (BYTES, b"test-string", {"type": "bytes", "optional": False}, "dGVzdC1zdHJpbmc="),
    (STRING, "test-string", {"type": "string", "optional": False}, "test-string"),
    (
        array(INT32),
        [1, 2, 3],
        {"type": "array", "items": {"type": "int32", "optional": False}, "optional": False},
        [1, 2, 3],
    ),
    (
        mapping(INT32, STRING),
        {1: "a"},
        {
            "type": "map",
            "keys": {"type": "int32", "optional": False},
            "values": {"type": "string", "optional": False},
            "optional": False,
        },
        [[1, "a"]],
    ),
    (
        STRUCT,
        {"required": "r"},
        {
            "type": "struct",
            "fields": [
                {"type": "string", "optional": True, "field": "optional"},
                {"type": "string", "optional": False, "field": "required"},
            ],
            "optional": False,
        },
        {"optional": None, "required": "r"},
    ),
    (decimal(2), AMOUNT, {**decimal_json(2), "optional": False}, "AJw="),
    (DATE, DAY_10000, {**logical("int32", "Date"), "optional": False}, 10000),
    (TIME, dt.time(4), {**logical("int32", "Time"), "optional": False}, 14400000),
    (TIMESTAMP, MOMENT_4E9, {**logical("int64", "Timestamp"), "optional": False}, 4000000000),
    (TIMESTAMP.but(default=MOMENT_42), None, {**logical("int64", "Timestamp"), "optional": False, "default": 42}, 42),
    (None, True, None, True),
    (None, [1, "string", True, b"\x00"], None, [1, "string", True, "AA=="]),
    (None, {"key1": 12, "key2": {"a": [1.5]}}, None, {"key1": 12, "key2": {"a": [1.5]}}),
    (None, {"string": 12, 52: "string", False: True}, None, [["string", 12], [52, "string"], [False, True]]),
    (None, {"outer": {1: 2}}, None, {"outer": [[1, 2]]}),
]


@pytest.mark.parametrize(("schema_json", "payload", "schema", "value"), READ)
def test_a_record_is_read_by_the_schema_in_its_envelope(
    schema_json: Any, payload: str, schema: Schema | None, value: Any
) -> None:
    found_schema, found = with_schemas().to_connect("topic", envelope(schema_json, payload))

    assert found_schema == schema
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("schema", "value", "schema_json", "payload"), WRITTEN)
def test_a_record_is_written_with_its_schema(schema: Schema | None, value: Any, schema_json: Any, payload: Any) -> None:
    written = with_schemas().from_connect("topic", schema, value)

    assert written is not None
    assert json.loads(written) == {"schema": schema_json, "payload": payload}


@pytest.mark.parametrize(("schema", "value", "schema_json", "payload"), WRITTEN)
def test_a_record_without_an_envelope_is_the_value_alone(
    schema: Schema | None, value: Any, schema_json: Any, payload: Any
) -> None:
    written = without_schemas().from_connect("topic", schema, value)

    assert written is not None
    assert json.loads(written) == payload


def test_the_envelope_is_written_without_blanks_in_the_order_of_kafka_connect() -> None:
    schema = struct({"a": INT32.but(doc="d", default=1)}, name="s")

    assert with_schemas().from_connect("topic", schema, {"a": 2}) == (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"doc":"d","default":1,"field":"a"}],'
        b'"optional":false,"name":"s"},"payload":{"a":2}}'
    )


def test_fields_may_have_any_name() -> None:
    names = ["straße", "0\x80", "日本", "a b", "class", 'with "quotes"', "\n", ""]
    schema = struct(dict.fromkeys(names, INT32))
    record = dict.fromkeys(names, 1)

    assert BASE64.to_connect("topic", BASE64.from_connect("topic", schema, record)) == (schema, record)


# --- null ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converter", [with_schemas(), without_schemas()])
def test_no_schema_and_no_value_is_a_tombstone_both_ways(converter: JsonConverter) -> None:
    assert converter.from_connect("topic", None, None) is None
    assert converter.to_connect("topic", None) == (None, None)


def test_null_with_a_schema_is_no_tombstone() -> None:
    written = with_schemas().from_connect("topic", OPTIONAL_STRING, None)

    assert written == b'{"schema":{"type":"string","optional":true},"payload":null}'
    assert without_schemas().from_connect("topic", OPTIONAL_STRING, None) == b"null"


def test_an_empty_record_without_an_envelope_is_null() -> None:
    assert without_schemas().to_connect("topic", b"") == (None, None)


def test_null_becomes_the_default_of_its_field_unless_told_otherwise() -> None:
    schema = struct({"a": OPTIONAL_STRING.but(default="d"), "b": OPTIONAL_STRING})
    record = with_schemas().from_connect("topic", schema, {})
    plain = with_schemas(replace_null_with_default="false")

    assert record is not None
    assert json.loads(record)["payload"] == {"a": "d", "b": None}
    kept = plain.from_connect("topic", schema, {"a": None})
    assert kept is not None
    assert json.loads(kept)["payload"] == {"a": None, "b": None}
    assert with_schemas().to_connect("topic", kept)[1] == {"a": "d", "b": None}
    assert plain.to_connect("topic", kept)[1] == {"a": None, "b": None}


def test_a_missing_field_is_read_as_its_default() -> None:
    numbers = {"type": "array", "items": {"type": "int32"}, "default": [1], "field": "b"}
    fields = [{"type": "int32", "default": 7, "field": "a"}, numbers]
    converter = with_schemas()
    record = envelope({"type": "struct", "fields": fields}, "{}")

    _, first = converter.to_connect("topic", record)
    first["b"].append(2)

    assert converter.to_connect("topic", record)[1] == {"a": 7, "b": [1]}


@pytest.mark.parametrize("schema", [STRING, decimal(1), DATE, FLOAT64, STRUCT, array(INT8), mapping(INT8, INT8)])
def test_null_for_what_is_required_is_refused_on_the_way_out(schema: Schema) -> None:
    with pytest.raises(DataError, match="^Conversion error: null value for field that is required"):
        with_schemas().from_connect("topic", struct({"a": schema}), {})


@pytest.mark.parametrize("kind", [{"type": "string"}, decimal_json(1), logical("int32", "Date")])
@pytest.mark.parametrize("payload", ["{}", '{"a": null}'])
def test_null_for_what_is_required_is_refused_on_the_way_in(kind: dict[str, Any], payload: str) -> None:
    schema = {"type": "struct", "fields": [{**kind, "field": "a"}]}

    with pytest.raises(DataError, match="^Invalid null value for required"):
        with_schemas().to_connect("topic", envelope(schema, payload))


# --- decimals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "text"), [("1.56", b"1.56"), ("1.5600", b"1.5600"), ("-0.001", b"-0.001")])
def test_decimals_are_written_as_numbers_when_asked(value: str, text: bytes) -> None:
    number = Decimal(value)
    scale = -int(number.as_tuple().exponent)

    assert without_schemas(decimal_format="numeric").from_connect("topic", decimal(scale), number) == text


def test_a_decimal_with_another_scale_is_refused() -> None:
    with pytest.raises(DataError, match="mismatching scale"):
        with_schemas().from_connect("topic", decimal(2), Decimal("1.5"))


# --- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"1",
        b"null",
        b"[]",
        b"{}",
        b'"text"',
        b'{"a": 1}',
        b'{"schema": null}',
        b'{"payload": 1}',
        b'{"schema": null, "payload": 1, "more": 1}',
    ],
)
def test_a_record_without_an_envelope_is_refused_with_what_to_do(data: bytes) -> None:
    with pytest.raises(DataError) as caught:
        with_schemas().to_connect("topic", data)

    assert str(caught.value) == ENVELOPE_ERROR


BROKEN = [
    b"{",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b"\xff\xfe",
    b'{"a": "\xff"}',
    b'{"\xff": 1}',
    b"1e400",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"9" * 10_000,
    b"9223372036854775808",
    b'{"a": [-9223372036854775809]}',
    b"1 2",
    b'{"a": "\\ud800"}',
]


@pytest.mark.parametrize("data", BROKEN)
def test_broken_text_is_an_error_of_the_record(data: bytes) -> None:
    with pytest.raises(DataError):
        without_schemas().to_connect("topic", data)
    with pytest.raises(DataError):
        with_schemas().to_connect("topic", b'{"schema": null, "payload": ' + data + b"}")
    with pytest.raises(DataError):
        with_schemas().to_connect("topic", b'{"schema": ' + data + b', "payload": null}')


UNFITTING = [
    ({"type": "int8"}, "128"),
    ({"type": "int32"}, '"12"'),
    ({"type": "int32"}, "12.5"),
    ({"type": "int32"}, "true"),
    ({"type": "int64"}, "9223372036854775808"),
    ({"type": "boolean"}, "1"),
    ({"type": "string"}, "1"),
    ({"type": "double"}, '"1.5"'),
    ({"type": "bytes"}, '"no base64!"'),
    ({"type": "bytes"}, "[1]"),
    ({"type": "array", "items": {"type": "int32"}}, '{"a": 1}'),
    ({"type": "array", "items": {"type": "int32"}}, '[1, "2"]'),
    ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}, "[[1, 2]]"),
    ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, '{"1": 2}'),
    ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, "[[1, 2, 3]]"),
    ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}, "[1]"),
    ({"type": "map", "keys": {"type": "array", "items": {"type": "int8"}}, "values": {"type": "int8"}}, "[[[1], 2]]"),
    (STRUCT_JSON, "[]"),
    (STRUCT_JSON, '{"required": 1}'),
    (decimal_json(2), "true"),
    (decimal_json(2), '"no base64!"'),
    (decimal_json(2), '""'),
    (decimal_json(2), "{}"),
    (decimal_json(2), "1e99999"),
    (decimal_json(2), "9" * 20_000),
    (decimal_json(2), '"' + "AAAA" * 2000 + '"'),
    (logical("bytes", "Decimal"), '"AJw="'),
    (logical("int32", "Date"), '"2020-01-01"'),
    (logical("int32", "Date"), "2147483647"),
    (logical("int32", "Time"), "86400000"),
    (logical("int32", "Time"), "-1"),
    (logical("int64", "Timestamp"), "9223372036854775807"),
    (logical("int64", "Timestamp"), "1.5"),
]


@pytest.mark.parametrize(("schema", "payload"), UNFITTING)
def test_a_value_that_its_schema_does_not_allow_is_refused(schema: Any, payload: str) -> None:
    with pytest.raises(DataError):
        with_schemas().to_connect("topic", envelope(schema, payload))


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({}, "Schema must contain 'type' field"),
        ([], "Schema must contain 'type' field"),
        ({"type": 1}, "Schema must contain 'type' field"),
        ({"type": "int128"}, "Unknown schema type: int128"),
        ({"type": "array"}, "Array schema did not specify the element type"),
        ({"type": "map", "values": {"type": "int8"}}, "Map schema did not specify the key type"),
        ({"type": "map", "keys": {"type": "int8"}}, "Map schema did not specify the value type"),
        ({"type": "struct"}, 'Struct schema\'s "fields" argument is not an array.'),
        ({"type": "struct", "fields": [{"type": "int8"}]}, "Struct schema's field name not specified properly"),
        ({"type": "int8", "parameters": {"a": 1}}, "Schema parameters must have string values."),
        ({"type": "struct", "fields": [{"type": "int8", "field": "a"}] * 2}, "two fields of the same name"),
        ({"type": "int8", "default": "a"}, "does not fit its schema"),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(schema: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        with_schemas().to_connect("topic", envelope(schema, "1"))


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {"type": "int8"}
    for _ in range(150):
        schema = {"type": "array", "items": schema}

    with pytest.raises(DataError, match="nested deeper"):
        with_schemas().to_connect("topic", envelope(schema, "1"))


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (FLOAT64, True),
        (FLOAT64, 1),
        (INT8, 128),
        (INT64, "1"),
        (STRING, b"bytes"),
        (BYTES, "text"),
        (STRING, "\ud800"),
        (BOOLEAN, 1),
        (DATE, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (TIMESTAMP, dt.date(2020, 1, 1)),
        (TIME, 5),
        (decimal(2), 1.5),
        (decimal(2), Decimal("NaN")),
        (array(INT8), {}),
        (mapping(STRING, INT8), []),
        (STRUCT, []),
        (STRUCT, {"required": "r", "unknown": 1}),
        (None, Decimal("1.56")),
        (None, dt.date(2020, 1, 1)),
        (None, {"a": {1, 2}}),
        (None, object()),
        (None, "\ud800"),
        (None, nested(100_000)),
        (None, nested(500)),
    ],
)
def test_a_value_that_cannot_be_written_is_an_error_of_the_record(schema: Schema | None, value: Any) -> None:
    for converter in (with_schemas(), without_schemas()):
        with pytest.raises(DataError):
            converter.from_connect("topic", schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "written"),
    [
        (FLOAT64, float("nan"), b'"NaN"'),
        (FLOAT32, float("inf"), b'"Infinity"'),
        (FLOAT64, float("-inf"), b'"-Infinity"'),
        (array(FLOAT64), [1.5, float("inf")], b'[1.5,"Infinity"]'),
        (mapping(INT8, FLOAT32), {1: float("nan")}, b'[[1,"NaN"]]'),
        (
            struct({"a": FLOAT64.as_optional(), "b": STRING}),
            {"a": float("-inf"), "b": "NaN"},
            b'{"a":"-Infinity","b":"NaN"}',
        ),
        (None, {"a": [float("inf")]}, b'{"a":["Infinity"]}'),
    ],
)
def test_what_is_no_number_is_written_as_a_word_and_read_again(
    schema: Schema | None, value: Any, written: bytes
) -> None:
    assert without_schemas().from_connect("topic", schema, value) == written
    if schema is not None:
        data = with_schemas().from_connect("topic", schema, value)
        assert repr(with_schemas().to_connect("topic", data)) == repr((schema, value))


@pytest.mark.parametrize("word", ["nan", "Infinit", "1", "NaN "])
def test_other_words_are_no_numbers(word: str) -> None:
    data = envelope({"type": "array", "items": {"type": "double"}}, f'["NaN", "{word}"]')
    with pytest.raises(DataError, match="does not fit its schema"):
        with_schemas().to_connect("topic", data)


@pytest.mark.parametrize("name", ["Date", "Time", "Timestamp"])
def test_a_moment_that_is_told_as_text_is_an_error_of_the_record(name: str) -> None:
    told = f"Invalid type for {name}, underlying representation should be integral but was STRING"
    with pytest.raises(DataError, match=told):
        with_schemas().to_connect("topic", envelope(logical("string", name), '"2020-01-01"'))


# --- caches and options ----------------------------------------------------------------------------------------------


def test_records_with_different_schemas_may_take_turns() -> None:
    converter = with_schemas(schemas_cache_size="1")
    schemas: list[tuple[Schema, Any]] = [(INT32, 1), (STRING, "a"), (struct({"a": INT8}), {"a": 1}), (DATE, DAY_10000)]

    for schema, value in schemas * 3:
        written = converter.from_connect("topic", schema, value)
        assert converter.to_connect("topic", written) == (schema, value)


def test_a_record_that_begins_like_the_last_one_is_still_looked_at() -> None:
    converter = with_schemas()
    good = converter.from_connect("topic", INT32, 1)
    assert good is not None
    converter.to_connect("topic", good)

    with pytest.raises(DataError) as caught:
        converter.to_connect("topic", good[:-1] + b',"more":1}')
    assert str(caught.value) == ENVELOPE_ERROR
    with pytest.raises(DataError):
        converter.to_connect("topic", good[:-2] + b'"a"}')
    assert converter.to_connect("topic", good + b" \n") == (INT32, 1)


def test_a_schema_may_be_given_for_all_records() -> None:
    converter = with_schemas(schema_content=json.dumps(STRUCT_JSON))

    assert converter.to_connect("topic", b'{"required": "r"}') == (STRUCT, {"required": "r"})


@pytest.mark.parametrize(
    "options",
    [
        {"schemas.enable": "maybe"},
        {"schemas.cache.size": "-1"},
        {"decimal.format": "HEX"},
        {"schema.content": "{"},
        {"schema.content": '{"type": "int128"}'},
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        JsonConverter(options, is_key=True)


def test_headers_are_converted_like_values() -> None:
    converter = JsonConverter({})
    written = converter.from_connect_header("topic", "key", STRING, "test-string")

    assert written == b'{"schema":{"type":"string","optional":false},"payload":"test-string"}'
    assert converter.to_connect_header("topic", "key", written) == (STRING, "test-string")


# --- round trips -----------------------------------------------------------------------------------------------------


@given(typed_values())
def test_what_was_written_is_read_as_it_was(typed: Typed) -> None:
    schema, value = typed

    for converter in (BASE64, NUMERIC):
        found_schema, found = converter.to_connect("topic", converter.from_connect("topic", schema, value))
        assert found_schema == schema
        assert _same(schema, found, value)


def float32(value: float) -> bytes:
    return binary.pack(">f", value)


def _same(schema: Schema, one: Any, other: Any) -> bool:
    """Whether two values are the same, digits of decimals included; of FLOAT32 only what 32 bits hold is."""
    if one is None or other is None:
        return one is other
    if schema.type is Type.FLOAT32:
        return float32(one) == float32(other)
    if schema.type is Type.STRUCT:
        return all(_same(field.schema, one.get(field.name), other.get(field.name)) for field in schema.fields)
    inner = schema.value_schema
    if inner is None:
        return str(one) == str(other)
    if schema.type is Type.ARRAY:
        return len(one) == len(other) and all(_same(inner, a, b) for a, b in zip(one, other, strict=True))
    return one.keys() == other.keys() and all(_same(inner, one[key], other[key]) for key in one)
