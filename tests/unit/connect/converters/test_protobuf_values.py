"""Messages of Protobuf as Connect values and back."""

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
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import DataError
from connect.converters.protobuf.config import ProtobufConfig
from connect.converters.protobuf.definitions import from_connect_schema
from connect.converters.protobuf.schemas import to_connect_schema
from connect.converters.protobuf.values import read_plan, write_plan
from schema_registry.formats import protobuf
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.protobuf_values import maker, reader

MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)
NAMESPACE = "io.confluent.connect.protobuf"


def config(**options: str) -> ProtobufConfig:
    given = {key.replace("_", "."): value for key, value in options.items()}
    return ProtobufConfig.parse({"schema.registry.url": "http://registry", **given})


def made(schema: Schema, value: Any, **options: str) -> tuple[Any, ProtobufConfig]:
    """The message of a value."""
    text, name = from_connect_schema(schema, config(**options))
    message = protobuf.parse(text).pool.FindMessageTypeByName(name)
    return maker(write_plan(message, schema, config(**options)))(value), config(**options)


def read(message: Any, options: ProtobufConfig) -> Any:
    return reader(read_plan(message.DESCRIPTOR, options))(message)


def parsed(file: str, **fields: Any) -> Any:
    """A message of a .proto file."""
    schema = protobuf.parse(file if "syntax" in file else f'syntax = "proto3";{file}')
    assert schema.name is not None
    maker: Any = schema.message_class(schema.name)
    return maker(**fields)


POINT = struct({"x": INT32, "y": INT64}, name="Point")
ROUND_TRIPS: list[tuple[Schema, Any]] = [
    (BOOLEAN, True),
    (INT8, -128),
    (INT64, -(1 << 63)),
    (INT64.but(parameters={f"{NAMESPACE}.Type": "uint64"}), -1),
    (INT64.but(parameters={f"{NAMESPACE}.Type": "uint32"}), (1 << 32) - 1),
    (INT32.but(parameters={f"{NAMESPACE}.Type": "sfixed32"}), -5),
    (FLOAT32, 1.5),
    (FLOAT64, 1e300),
    (STRING, "grüße"),
    (BYTES, b"\x00\xff"),
    (DATE, dt.date(1, 1, 1)),
    (TIME, dt.time(23, 59, 59, 999000)),
    (TIMESTAMP, MOMENT),
    (TIMESTAMP, dt.datetime(1950, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC)),
    (decimal(2), Decimal("-1234567890123456789012345678901234567890.25")),
    (array(STRING), ["a", "b"]),
    (array(TIMESTAMP), [MOMENT]),
    (array(POINT), [{"x": 1, "y": 2}]),
    (mapping(STRING, INT32), {"a": 1}),
    (mapping(INT32, POINT), {1: {"x": 1, "y": 2}}),
    (POINT, {"x": 1, "y": 2}),
    (POINT.as_optional(), None),
]


@pytest.mark.parametrize(("schema", "value"), ROUND_TRIPS)
def test_what_was_written_is_read_as_the_same_value(schema: Schema, value: Any) -> None:
    assert read(*made(struct({"f": schema}), {"f": value})) == {"f": value}


@pytest.mark.parametrize(
    ("schema", "value"), [(INT32, 5), (STRING, ""), (BYTES, b"x"), (FLOAT64, 0.5), (BOOLEAN, False)]
)
def test_a_plain_value_is_a_record_of_its_own(schema: Schema, value: Any) -> None:
    assert read(*made(schema, value)) == value


ONE_OF = """message M {
  oneof choice { string text = 1; int32 number = 2; P point = 3; }
  optional int32 maybe = 4;
  E e = 5;
  map<string, P> points = 6;
  P p = 7;
  message P { int32 x = 1; }
  enum E { NONE = 0; SOME = 7; }
}"""
EMPTY: dict[str, Any] = {"choice_0": None, "maybe": None, "e": "NONE", "points": {}, "p": None}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, EMPTY),
        ({"number": 0}, {**EMPTY, "choice_0": {"number": 0}}),
        ({"text": "x"}, {**EMPTY, "choice_0": {"text": "x"}}),
        ({"point": {"x": 1}}, {**EMPTY, "choice_0": {"point": {"x": 1}}}),
        ({"maybe": 0}, {**EMPTY, "maybe": 0}),
        ({"e": 7}, {**EMPTY, "e": "SOME"}),
        ({"e": 9}, {**EMPTY, "e": "UNKNOWN_ENUM_VALUE_E_9"}),
        ({"points": {"a": {"x": 1}}}, {**EMPTY, "points": {"a": {"x": 1}}}),
        ({"p": {}}, {**EMPTY, "p": {"x": 0}}),
    ],
)
def test_a_message_is_read_and_written_back(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    message = parsed(ONE_OF, **fields)
    options = config()
    schema = to_connect_schema(read_plan(message.DESCRIPTOR, options), options)

    assert read(message, options) == expected
    if expected["e"] in ("NONE", "SOME"):
        assert maker(write_plan(message.DESCRIPTOR, schema, options))(expected) == message


@pytest.mark.parametrize("line", ["map<string, int32> m = 1;", "map<string, P> m = 1; message P { int32 x = 1; }"])
def test_null_in_a_map_is_what_is_not_set(line: str) -> None:
    descriptor = parsed(f"message M {{ {line} }}").DESCRIPTOR
    schema = to_connect_schema(read_plan(descriptor, config()), config())
    message = maker(write_plan(descriptor, schema, config()))({"m": {"a": None}})

    assert read(message, config()) == {"m": {"a": 0 if "int32> m" in line else {"x": 0}}}


def test_null_in_entries_of_a_map_is_what_is_not_set() -> None:
    assert read(*made(struct({"m": mapping(STRING, INT32.as_optional())}), {"m": {"a": None}})) == {"m": {"a": 0}}


def test_enums_can_be_numbers() -> None:
    assert read(parsed(ONE_OF, e=7), config(int_for_enums="true"))["e"] == 7


def test_oneofs_can_be_flattened() -> None:
    value = read(parsed(ONE_OF, number=3), config(flatten_unions="true"))
    assert (value["text"], value["number"], value["point"]) == (None, 3, None)


def test_messages_that_are_not_set_can_be_structs_of_defaults() -> None:
    assert read(parsed(ONE_OF), config(generate_struct_for_nulls="true"))["p"] == {"x": 0}


PROTO2 = 'syntax = "proto2"; message M { optional int32 a = 1 [default = 5]; required int32 b = 2; }'


def test_optional_fields_of_proto2_that_are_not_set_are_null_or_their_default() -> None:
    assert read(parsed(PROTO2, b=1), config()) == {"a": None, "b": 1}
    assert read(parsed(PROTO2, b=1), config(optional_for_proto2="false")) == {"a": 5, "b": 1}


@pytest.mark.parametrize("option", ["wrapper_for_nullables", "optional_for_nullables"])
def test_null_is_told_from_the_default_on_demand(option: str) -> None:
    schema = struct({"a": OPTIONAL_INT32, "b": OPTIONAL_INT32, "c": INT32})
    value = {"a": None, "b": 0, "c": 0}

    assert read(*made(schema, value, **{option: "true"})) == value
    assert read(*made(schema, value)) == {"a": 0, "b": 0, "c": 0}


def test_null_is_written_as_the_default_of_its_field() -> None:
    assert read(*made(struct({"a": INT32.but(default=7)}), {})) == {"a": 7}


WRONG: list[tuple[Schema, Any]] = [
    (INT8, 128),
    (INT32, 1 << 31),
    (INT32, 1.0),
    (INT32, True),
    (INT64.but(parameters={f"{NAMESPACE}.Type": "uint32"}), -1),
    (FLOAT64, "1"),
    (BOOLEAN, 1),
    (STRING, b"x"),
    (BYTES, "x"),
    (DATE, MOMENT),
    (TIME, 5),
    (TIMESTAMP, 5),
    (decimal(2), Decimal("1.5")),
    (array(STRING), "ab"),
    (array(STRING), ["a", None]),
    (mapping(STRING, INT32), []),
    (POINT, 5),
]


@pytest.mark.parametrize(("schema", "value"), WRONG)
def test_a_value_that_does_not_fit_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(InvalidData):
        made(struct({"wrong": schema}), {"wrong": value})


def test_an_unknown_symbol_of_an_enum_is_refused() -> None:
    message = parsed(ONE_OF)
    schema = to_connect_schema(read_plan(message.DESCRIPTOR, config()), config())
    with pytest.raises(InvalidData, match="e: the enum M.E has no value 'OTHER'"):
        maker(write_plan(message.DESCRIPTOR, schema, config()))({"e": "OTHER"})


def test_a_field_that_the_message_does_not_have_is_refused() -> None:
    with pytest.raises(DataError, match="Cannot find field with name other"):
        write_plan(parsed(ONE_OF).DESCRIPTOR, struct({"other": INT32}), config())


@pytest.mark.parametrize(("data", "expected"), [(b"\x00\xc8", "2"), (b"\x00\xc9", "2.01")])
def test_a_decimal_has_the_scale_of_its_schema_if_it_is_the_same_number(data: bytes, expected: str) -> None:
    file = 'import "confluent/type/decimal.proto"; message M { confluent.type.Decimal f = 1; }'
    found = read(parsed(file, f={"value": data, "scale": 2}), config())["f"]

    assert str(found) == expected


@pytest.mark.parametrize(
    ("kind", "path", "fields"),
    [
        ("google.type.Date", "google/type/date.proto", {"year": 2024, "month": 2, "day": 30}),
        ("google.type.TimeOfDay", "google/type/timeofday.proto", {"hours": 24}),
        ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto", {"seconds": 1 << 60}),
        ("confluent.type.Decimal", "confluent/type/decimal.proto", {"scale": 1 << 30, "value": b"1"}),
    ],
)
def test_impossible_dates_times_and_decimals_are_refused(kind: str, path: str, fields: dict[str, int]) -> None:
    message = parsed(f'import "{path}"; message M {{ {kind} f = 1; }}', f=fields)
    with pytest.raises(InvalidData):
        read(message, config())
