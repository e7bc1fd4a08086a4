"""Documents of JSON Schemas as Connect values and back."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
    struct,
)
from connect.converters.json_schema.config import JsonSchemaConfig
from connect.converters.json_schema.values import connect_plan, writing
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_values import reader

ONE_OF = "io.confluent.connect.json.OneOf"
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)
POINT = struct({"x": INT32, "y": INT32}, name="Point")
NAMED = struct({"name": STRING}, name="Named")


def one_of(*schemas: Schema, optional: bool = False) -> Schema:
    fields = {f"{ONE_OF}.field.{index}": schema.as_optional() for index, schema in enumerate(schemas)}
    return struct(fields, name=ONE_OF, optional=optional)


def branch(index: int, value: Any) -> dict[str, Any]:
    return {f"{ONE_OF}.field.{index}": value}


def config(**options: str) -> JsonSchemaConfig:
    given = {key.replace("_", "."): value for key, value in options.items()}
    return JsonSchemaConfig.parse({"schema.registry.url": "http://registry", **given})


def write(schema: Schema | None, value: Any, **options: str) -> bytes:
    return writing(schema, config(**options))(value)


def read(schema: Schema, text: str | bytes) -> Any:
    data = text.encode() if isinstance(text, str) else text
    return reader(connect_plan(schema))(b"12345" + data, 5)


BOTH_WAYS: list[tuple[Schema, Any, str]] = [
    (BOOLEAN, True, "true"),
    (INT8, -128, "-128"),
    (INT64, (1 << 63) - 1, "9223372036854775807"),
    (FLOAT64, 1.5, "1.5"),
    (STRING, "grüße", '"grüße"'),
    (BYTES, b"\x00\xff", '"AP8="'),
    (OPTIONAL_STRING, None, "null"),
    (DATE, dt.date(1970, 1, 5), "4"),
    (TIME, dt.time(0, 0, 1), "1000"),
    (TIMESTAMP, MOMENT, "1709209815123"),
    (decimal(2), Decimal("-1.25"), '"gw=="'),
    (array(OPTIONAL_STRING), ["a", None], '["a",null]'),
    (mapping(STRING, INT32), {"a": 1}, '{"a":1}'),
    (mapping(INT32, STRING), {1: "a"}, '[{"key":1,"value":"a"}]'),
    (struct({"a": INT32, "b": OPTIONAL_STRING}), {"a": 1, "b": None}, '{"a":1,"b":null}'),
    (struct({"p": POINT, "q": array(POINT)}), {"p": {"x": 1, "y": 2}, "q": []}, '{"p":{"x":1,"y":2},"q":[]}'),
    (one_of(INT32, STRING), branch(0, 5), "5"),
    (one_of(INT32, STRING), branch(1, "5"), '"5"'),
    (one_of(INT32, STRING, optional=True), None, "null"),
    (one_of(POINT, NAMED), branch(1, {"name": "n"}), '{"name":"n"}'),
    (one_of(STRING, array(INT32)), branch(1, [1]), "[1]"),
    (one_of(BOOLEAN, mapping(STRING, INT32)), branch(1, {"a": 1}), '{"a":1}'),
]


@pytest.mark.parametrize(("schema", "value", "text"), BOTH_WAYS)
def test_a_value_is_written(schema: Schema, value: Any, text: str) -> None:
    assert write(schema, value).decode() == text


@pytest.mark.parametrize(("schema", "value", "text"), BOTH_WAYS)
def test_a_document_is_read(schema: Schema, value: Any, text: str) -> None:
    assert read(schema, text) == value


READ_ONLY: list[tuple[Schema, str, Any]] = [
    (FLOAT32, "3", 3.0),
    (INT32, "3.0", 3),
    (decimal(2), "1.5", Decimal("1.50")),
    (decimal(2), "12345678901234567890.25", Decimal("12345678901234567890.25")),
    (decimal(0), "100", Decimal(100)),
    (decimal(-2), "1200", Decimal("12E+2")),
    (
        struct({"d": decimal(1), "f": FLOAT64, "i": INT64}),
        '{"d":0.1,"f":0.25,"i":1}',
        {"d": Decimal("0.1"), "f": 0.25, "i": 1},
    ),
    (struct({"a": INT32, "b": STRING}), '{"a":1,"extra":[]}', {"a": 1, "b": None}),
    (struct({"a": INT32.but(default=7)}), "{}", {"a": 7}),
    (struct({"a": OPTIONAL_INT32.but(default=7)}), '{"a":null}', {"a": 7}),
    (struct({"a": one_of(INT32, FLOAT64)}), '{"a":1.5}', {"a": branch(1, 1.5)}),
    (one_of(struct({"x": INT32}), POINT), '{"x":1,"y":2}', branch(1, {"x": 1, "y": 2})),
    (
        one_of(struct({"c": struct({"a": STRING})}), struct({"c": struct({"b": STRING})})),
        '{"c":{"b":"x"}}',
        branch(1, {"c": {"b": "x"}}),
    ),
    (STRING.but(parameters={"io.confluent.connect.json.Enum": ""}), "3", "3"),
]


@pytest.mark.parametrize(("schema", "text", "value"), READ_ONLY)
def test_documents_of_others_are_read(schema: Schema, text: str, value: Any) -> None:
    found = read(schema, text)

    assert found == value
    assert repr(found) == repr(value)


ADDITIONAL = "__connect_additional_properties__"
ANYTHING = STRING.but(parameters={"io.confluent.connect.json.Text": "true"})
OTHERS: list[tuple[Schema, str, Any]] = [
    (ANYTHING, '{"x":{"y":[1,null]},"z":null,"a":"b"}', {"x": '{"y":[1,null]}', "z": "null"}),
    (INT32, '{"x":1,"a":"b"}', {"x": 1}),
    (INT32, '{"a":"b"}', None),
]


@pytest.mark.parametrize(("values", "text", "others"), OTHERS)
def test_additional_properties_are_kept(values: Schema, text: str, others: Any) -> None:
    schema = struct({"a": STRING, ADDITIONAL: mapping(STRING, values, optional=True)})
    value = {"a": "b", ADDITIONAL: others}

    assert read(schema, text) == value
    assert write(schema, value).decode() == text


def test_additional_properties_that_are_no_json_are_refused() -> None:
    schema = struct({ADDITIONAL: mapping(STRING, ANYTHING, optional=True)})
    with pytest.raises(InvalidData, match="the text is not JSON"):
        write(schema, {ADDITIONAL: {"x": "{"}})


def test_decimals_can_be_written_as_numbers() -> None:
    assert write(decimal(2), Decimal("1.50"), decimal_format="NUMERIC") == b"1.50"


def test_what_is_neither_optional_nor_there_is_left_out() -> None:
    assert write(struct({"a": INT32, "b": STRING}), {"a": 1}) == b'{"a":1}'


def test_null_is_written_as_the_default_of_its_field_unless_that_is_to_be_ignored() -> None:
    schema = struct({"a": OPTIONAL_INT32.but(default=7)})
    assert write(schema, {}) == b'{"a":7}'
    assert write(schema, {}, ignore_default_for_nullables="true") == b'{"a":null}'


WRONG_VALUES: list[tuple[Schema, Any]] = [
    (INT8, 128),
    (INT32, 1.5),
    (INT32, True),
    (INT32, "1"),
    (FLOAT64, float("nan")),
    (FLOAT64, "1"),
    (BOOLEAN, 1),
    (STRING, 5),
    (BYTES, "x"),
    (DATE, MOMENT),
    (TIMESTAMP, 5),
    (decimal(2), 1.5),
    (decimal(2), Decimal("1.5")),
    (array(INT32), "ab"),
    (array(INT32), [None]),
    (mapping(STRING, INT32), {1: 1}),
    (POINT, [1]),
    (one_of(INT32, STRING), {}),
]


@pytest.mark.parametrize(("schema", "value"), WRONG_VALUES)
def test_a_value_that_does_not_fit_is_refused_with_the_name_of_its_field(schema: Schema, value: Any) -> None:
    with pytest.raises(InvalidData, match="^wrong: "):
        write(struct({"wrong": schema}), {"wrong": value})


WRONG_TEXTS: list[tuple[Schema, str]] = [
    (INT32, "2147483648"),
    (INT32, "1.5"),
    (INT32, '"1"'),
    (INT32, "true"),
    (INT32, "null"),
    (FLOAT64, '"NaN"'),
    (BOOLEAN, "1"),
    (STRING, "1"),
    (BYTES, '"not base64!"'),
    (DATE, '"2024-01-01"'),
    (TIME, "86400000"),
    (TIMESTAMP, "9223372036854775807"),
    (decimal(2), "1.555"),
    (decimal(2), "true"),
    (array(INT32), "{}"),
    (mapping(STRING, INT32), "[]"),
    (mapping(INT32, INT32), "{}"),
    (mapping(INT32, INT32), "[1]"),
    (mapping(INT32, INT32), '[{"key":1}]'),
    (POINT, "[]"),
    (one_of(INT32, STRING), "true"),
    (STRING, "{"),
    (STRING, ""),
]


@pytest.mark.parametrize(("schema", "text"), WRONG_TEXTS)
def test_a_document_that_does_not_fit_is_refused(schema: Schema, text: str) -> None:
    with pytest.raises(InvalidData):
        read(schema, text)


@pytest.mark.parametrize("schema", [decimal(2), INT64, FLOAT64])
def test_numbers_of_absurd_size_are_refused_at_once(schema: Schema) -> None:
    with pytest.raises(InvalidData, match="^b: "):
        read(struct({"a": decimal(2), "b": schema}), '{"a":1,"b":1e999999999}')
