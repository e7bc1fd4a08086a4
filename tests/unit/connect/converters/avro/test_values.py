"""Avro data as Connect values and back; fastavro, which Confluent's Python client uses, has the last word."""

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Type,
    array,
    decimal,
    mapping,
    struct,
)
from connect.api.errors import DataError
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.definitions import from_connect_schema
from connect.converters.avro.schemas import to_connect_schema
from connect.converters.avro.values import anything_of, reading, writing
from schema_registry.formats import avro
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.errors import InvalidData

CONFIG = AvroConfig.parse({"schema.registry.url": "http://registry"})
UTC_TIME = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)
UNION = "io.confluent.connect.avro.Union"
PAIR = struct({"x": INT32, "y": OPTIONAL_STRING}, name="Pair")


def write(schema: Schema, value: Any, definition: Any = None, config: AvroConfig = CONFIG) -> bytes:
    text = from_connect_schema(schema, config) if definition is None else json.dumps(definition)
    return writing(avro.parse(text).root, schema, config)(value)


def read(definition: Any, data: bytes, config: AvroConfig = CONFIG) -> Any:
    root = avro.parse(definition if isinstance(definition, str) else json.dumps(definition)).root
    return reading(root, to_connect_schema(root, config), config)(b"12345" + data, 5)


ROUND_TRIPS: list[tuple[Schema, Any]] = [
    (BOOLEAN, True),
    (INT8, -128),
    (INT32, -(1 << 31)),
    (INT64, (1 << 63) - 1),
    (FLOAT32, 1.5),
    (FLOAT64, -math.inf),
    (STRING, "grüße " * 300),
    (BYTES, b"\x00\xff"),
    (OPTIONAL_STRING, None),
    (OPTIONAL_STRING, "x"),
    (DATE, dt.date(1, 1, 1)),
    (TIME, dt.time(23, 59, 59, 999000)),
    (TIMESTAMP, UTC_TIME),
    (TIMESTAMP, dt.datetime(1950, 1, 1, tzinfo=dt.UTC)),
    (decimal(2), Decimal("-1234567890123456789012345678901234567890.25")),
    (decimal(0), Decimal(-128)),
    (decimal(70), Decimal(1).scaleb(-70)),
    (decimal(2, optional=True), None),
    (array(STRING), ["a", "b"]),
    (array(OPTIONAL_INT32), [1, None, 3]),
    (array(decimal(1)), [Decimal("1.5")]),
    (array(STRING), []),
    (mapping(STRING, INT32), {"a": 1}),
    (mapping(STRING, decimal(1)), {"a": Decimal("1.5")}),
    (mapping(INT32, TIMESTAMP), {1: UTC_TIME, 2: UTC_TIME}),
    (mapping(OPTIONAL_STRING, array(INT32)), {None: [1], "a": []}),
    (PAIR, {"x": 1, "y": None}),
    (struct({"p": PAIR, "q": array(PAIR)}, name="Q"), {"p": {"x": 1, "y": "2"}, "q": [{"x": 3, "y": None}]}),
    (struct({"p": PAIR.as_optional(), "d": decimal(1)}, name="Q"), {"p": None, "d": Decimal("1.0")}),
    (struct({"int": OPTIONAL_INT32, "string": OPTIONAL_STRING}, name=UNION), {"int": 5}),
    (struct({"int": OPTIONAL_INT32, "string": OPTIONAL_STRING}, name=UNION), {"string": "5"}),
    (struct({"int": OPTIONAL_INT32, "long": INT64.as_optional()}, name=UNION), {"long": 5}),
    (struct({"int": OPTIONAL_INT32, "string": OPTIONAL_STRING}, name=UNION, optional=True), None),
    (struct({"float": FLOAT32.as_optional(), "double": FLOAT64.as_optional()}, name=UNION), {"double": math.inf}),
    (
        struct(
            {
                "u": struct({"Pair": PAIR.as_optional(), "bytes": BYTES.as_optional()}, name=UNION),
                "d": decimal(2),
                "m": mapping(INT32, STRING),
                "a": array(DATE),
                "t": mapping(STRING, TIMESTAMP),
                "o": OPTIONAL_STRING,
            },
            name="R",
        ),
        {
            "u": {"Pair": {"x": 1, "y": "z"}},
            "d": Decimal("1.25"),
            "m": {1: "a"},
            "a": [dt.date(2024, 1, 1)],
            "t": {"k": UTC_TIME},
            "o": "x",
        },
    ),
    (Schema(Type.BYTES, name="a.F", parameters={"connect.fixed.size": "4"}), b"1234"),
]


@pytest.mark.parametrize(("schema", "value"), ROUND_TRIPS)
def test_what_was_written_is_read_as_the_same_value(schema: Schema, value: Any) -> None:
    text = from_connect_schema(schema, CONFIG)

    assert read(text, write(schema, value)) == value


FLAT = struct(
    {
        "long": INT64,
        "text": STRING,
        "int": INT32,
        "double": FLOAT64,
        "float": FLOAT32,
        "flag": BOOLEAN,
        "raw": BYTES,
        "moment": TIMESTAMP,
        "day": DATE,
        "time": TIME,
        "price": decimal(3),
        "maybe_long": INT64.as_optional(),
        "maybe_text": OPTIONAL_STRING,
        "maybe_double": FLOAT64.as_optional(),
        "maybe_flag": BOOLEAN.as_optional(),
        "maybe_raw": BYTES.as_optional(),
        "maybe_moment": TIMESTAMP.as_optional(),
    },
    name="Flat",
)
moments = st.datetimes(timezones=st.just(dt.UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
longs = st.integers(-(1 << 63), (1 << 63) - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=200)
flat_values = st.fixed_dictionaries(
    {
        "long": longs,
        "text": texts,
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "double": st.floats(allow_nan=False),
        "float": st.floats(allow_nan=False, width=32),
        "flag": st.booleans(),
        "raw": st.binary(max_size=200),
        "moment": moments,
        "day": st.dates(),
        "time": st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
        "price": st.integers(-(10**27), 10**27).map(lambda number: Decimal(number).scaleb(-3)),
        "maybe_long": st.none() | longs,
        "maybe_text": st.none() | texts,
        "maybe_double": st.none() | st.floats(allow_nan=False),
        "maybe_flag": st.none() | st.booleans(),
        "maybe_raw": st.none() | st.binary(max_size=200),
        "maybe_moment": st.none() | moments,
    }
)
FLAT_SCHEMA = avro.parse(from_connect_schema(FLAT, CONFIG))
FLAT_CODEC = AvroCodec(FLAT_SCHEMA)
WRITE_FLAT = writing(FLAT_SCHEMA.root, FLAT, CONFIG)
READ_FLAT = reading(FLAT_SCHEMA.root, FLAT, CONFIG)


@given(flat_values)
def test_flat_records_are_written_and_read_as_fastavro_does_it(value: dict[str, Any]) -> None:
    data = WRITE_FLAT(value)

    assert FLAT_CODEC.decode(data) == value
    assert READ_FLAT(data, 0) == value


@given(st.binary(max_size=120))
def test_garbage_is_read_as_fastavro_reads_it_or_refused(data: bytes) -> None:
    try:
        found = READ_FLAT(data, 0)
    except InvalidData:
        return
    expected = FLAT_CODEC.decode(data)
    same = {name for name in expected if repr(found[name]) == repr(expected[name])}
    assert same >= expected.keys() - {"price"}  # which fastavro rounds to its precision


@given(flat_values, st.integers(0, 400))
def test_truncated_records_are_refused(value: dict[str, Any], size: int) -> None:
    data = WRITE_FLAT(value)
    if size < len(data):
        with pytest.raises(InvalidData):
            READ_FLAT(data[:size], 0)


FIELDS_THAT_DO_NOT_FIT: list[tuple[Schema, Any]] = [
    (INT32, 1 << 31),
    (INT32, 3.0),
    (INT32, True),
    (INT32, "3"),
    (INT32, None),
    (INT64, 1 << 63),
    (FLOAT64, "3"),
    (FLOAT32, 1e300),
    (BOOLEAN, 1),
    (STRING, 5),
    (STRING, b"x"),
    (STRING, "\ud800"),
    (BYTES, "x"),
    (DATE, UTC_TIME),
    (DATE, 5),
    (TIME, "12:00"),
    (TIMESTAMP, 1_700_000_000_000),
    (TIMESTAMP, dt.date(2024, 1, 1)),
    (decimal(2), 1.25),
    (decimal(2), Decimal("1.255")),
    (decimal(2), Decimal("NaN")),
    (array(STRING), "abc"),
    (array(STRING), ["a", None]),
    (mapping(STRING, INT32), [("a", 1)]),
    (mapping(STRING, INT32), {1: 1}),
    (mapping(INT32, INT32), {"1": 1}),
    (PAIR, [1, 2]),
    (PAIR, {"y": "x is missing"}),
    (struct({"int": OPTIONAL_INT32, "string": OPTIONAL_STRING}, name=UNION), {}),
]


@pytest.mark.parametrize(("schema", "value"), FIELDS_THAT_DO_NOT_FIT)
def test_a_value_that_does_not_fit_is_refused_with_the_name_of_its_field(schema: Schema, value: Any) -> None:
    with pytest.raises(InvalidData, match="^wrong: "):
        write(struct({"wrong": schema}), {"wrong": value})


def test_a_whole_number_is_a_float_too() -> None:
    assert write(struct({"a": FLOAT64}), {"a": 3}) == write(struct({"a": FLOAT64}), {"a": 3.0})


def test_null_is_written_as_the_default_of_its_field() -> None:
    schema = struct({"a": INT32.but(default=7), "b": OPTIONAL_INT32.but(default=8)})
    text = from_connect_schema(schema, CONFIG)

    assert read(text, write(schema, {"a": None})) == {"a": 7, "b": 8}


def test_defaults_of_optional_fields_can_be_ignored() -> None:
    config = AvroConfig.parse({"schema.registry.url": "http://registry", "ignore.default.for.nullables": "true"})
    schema = struct({"a": INT32.but(default=7), "b": OPTIONAL_INT32.but(default=8)})
    text = from_connect_schema(schema, config)

    assert read(text, write(schema, {}, config=config)) == {"a": 7, "b": None}


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"type": "long", "logicalType": "timestamp-micros"}, 1_700_000_000_000_000),
        ({"type": "long", "logicalType": "time-micros"}, 5),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 5),
        ({"type": "string", "logicalType": "uuid"}, "not even one"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}, Decimal("12345.6")),
    ],
)
def test_logical_types_that_connect_does_not_know_are_read_as_stored(definition: Any, expected: Any) -> None:
    root = {"type": "record", "name": "R", "fields": [{"name": "a", "type": definition}, {"name": "b", "type": "int"}]}
    stored = (123456).to_bytes(3, "big") if isinstance(expected, Decimal) else expected
    plain = {"type": "record", "name": "R", "fields": [{"name": "a", "type": definition["type"]}, root["fields"][1]]}
    data = AvroCodec(avro.parse(json.dumps(plain))).encode({"a": stored, "b": 1})

    assert read(root, data) == {"a": expected, "b": 1}


LEGACY: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": "long", "connect.name": "org.apache.kafka.connect.data.Timestamp", "connect.version": 1}, 0, "moment"),
    ({"type": "int", "connect.name": "org.apache.kafka.connect.data.Date", "connect.version": 1}, 0, "day"),
    (
        {
            "type": "bytes",
            "connect.name": "org.apache.kafka.connect.data.Decimal",
            "connect.version": 1,
            "connect.parameters": {"scale": "2"},
        },
        b"}",
        "price",
    ),
]
EXPECTED = {"moment": dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "day": dt.date(1970, 1, 1), "price": Decimal("1.25")}


@pytest.mark.parametrize(("definition", "stored", "name"), LEGACY)
@pytest.mark.parametrize("is_nested", [False, True])
def test_logical_types_are_known_by_their_connect_name_alone(
    definition: dict[str, Any], stored: Any, name: str, is_nested: bool
) -> None:
    type_: Any = {"type": "array", "items": definition} if is_nested else definition
    root = {"type": "record", "name": "R", "fields": [{"name": "a", "type": type_}]}
    data = AvroCodec(avro.parse(json.dumps(root))).encode({"a": [stored] if is_nested else stored})

    assert read(root, data) == {"a": [EXPECTED[name]] if is_nested else EXPECTED[name]}


LISTS = struct(
    {
        "texts": array(STRING),
        "numbers": array(OPTIONAL_INT32, optional=True),
        "pairs": array(PAIR),
        "by_name": mapping(STRING, array(TIMESTAMP)),
        "maybe": mapping(STRING, PAIR.as_optional(), optional=True),
    },
    name="Lists",
)
numbers = st.integers(-(1 << 31), (1 << 31) - 1)
pairs = st.fixed_dictionaries({"x": numbers, "y": st.none() | texts})
list_values = st.fixed_dictionaries(
    {
        "texts": st.lists(texts, max_size=100),
        "numbers": st.none() | st.lists(st.none() | numbers, max_size=100),
        "pairs": st.lists(pairs, max_size=3),
        "by_name": st.dictionaries(texts, st.lists(moments, max_size=3), max_size=3),
        "maybe": st.none() | st.dictionaries(texts, st.none() | pairs, max_size=3),
    }
)
LISTS_SCHEMA = avro.parse(from_connect_schema(LISTS, CONFIG))
LISTS_CODEC = AvroCodec(LISTS_SCHEMA)
WRITE_LISTS = writing(LISTS_SCHEMA.root, LISTS, CONFIG)
READ_LISTS = reading(LISTS_SCHEMA.root, LISTS, CONFIG)


@given(list_values)
def test_lists_and_maps_are_written_and_read_as_fastavro_does_it(value: dict[str, Any]) -> None:
    data = WRITE_LISTS(value)

    assert data == LISTS_CODEC.encode(value)
    assert READ_LISTS(data, 0) == value


@given(st.binary(max_size=60))
def test_garbage_of_lists_is_read_as_fastavro_reads_it_or_refused(data: bytes) -> None:
    try:
        found = READ_LISTS(data, 0)
    except InvalidData:
        return
    assert found == LISTS_CODEC.decode(data)


def test_lists_that_tell_their_size_are_read() -> None:
    sized = b"\x03\x04\x02a" + b"\x02b" + b"\x00"  # -2 items of 4 bytes
    assert read(
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "string"}}]}, sized
    ) == {"a": ["a", "b"]}


@pytest.mark.parametrize("depth", [9, 30, 60])
def test_lists_in_lists_are_read_however_deep(depth: int) -> None:
    schema = STRING
    value: Any = "x"
    for _ in range(depth):
        schema, value = array(schema), [value]
    root = struct({"a": schema})

    assert read(from_connect_schema(root, CONFIG), write(root, {"a": value})) == {"a": value}


NESTED = struct({"before": FLAT.as_optional(), "after": FLAT, "op": STRING}, name="Envelope")
NESTED_SCHEMA = avro.parse(from_connect_schema(NESTED, CONFIG))
NESTED_CODEC = AvroCodec(NESTED_SCHEMA)
WRITE_NESTED = writing(NESTED_SCHEMA.root, NESTED, CONFIG)
READ_NESTED = reading(NESTED_SCHEMA.root, NESTED, CONFIG)


@given(st.none() | flat_values, flat_values)
def test_records_in_records_are_written_and_read_as_fastavro_does_it(before: Any, after: Any) -> None:
    value = {"before": before, "after": after, "op": "c"}
    data = WRITE_NESTED(value)

    assert NESTED_CODEC.decode(data) == value
    assert READ_NESTED(data, 0) == value


@pytest.mark.parametrize(("number", "data"), [(-128, b"\x80"), (127, b"\x7f"), (128, b"\x00\x80"), (0, b"\x00")])
def test_decimals_take_as_few_bytes_as_in_java(number: int, data: bytes) -> None:
    assert write(decimal(0), Decimal(number)) == data


def test_names_that_were_scrubbed_still_find_their_fields() -> None:
    config = AvroConfig.parse({"schema.registry.url": "http://registry", "scrub.invalid.names": "true"})
    schema = struct({"a-b": INT32, "c.d": OPTIONAL_STRING})

    assert read(from_connect_schema(schema, config), write(schema, {"a-b": 1, "c.d": "x"}, config=config)) == {
        "a_b": 1,
        "c_d": "x",
    }


def test_another_schema_of_the_registry_can_be_written_by() -> None:
    latest = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "b", "type": ["null", "string", "long"]},
            {"name": "new", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
            {"name": "a", "type": ["long", "null"]},
        ],
    }
    schema = struct({"a": INT32, "b": STRING, "dropped": STRING})
    data = write(schema, {"a": 1, "b": "x", "dropped": "y"}, latest)

    assert AvroCodec(avro.parse(json.dumps(latest))).decode(data) == {"b": "x", "new": [1, 2], "a": 1}


@pytest.mark.parametrize(
    ("latest", "problem"),
    [
        ([{"name": "a", "type": "int"}, {"name": "b", "type": "int"}], "has a field b that the Connect schema has not"),
        ([{"name": "a", "type": ["null", "string"]}], "has no place for int32"),
    ],
)
def test_a_schema_of_the_registry_that_cannot_be_written_by_is_refused(latest: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        write(struct({"a": INT32}), {"a": 1}, {"type": "record", "name": "R", "fields": latest})


@pytest.mark.parametrize("value", [None, True, 5, 1.5, "x", b"raw", [1, "a", None], {"a": {"b": [True]}, 2: None}])
def test_values_without_a_schema_are_kept(value: Any) -> None:
    text = from_connect_schema(None, CONFIG)
    data = AvroCodec(avro.parse(text)).encode(anything_of(value))

    assert read(text, data) == value


def test_a_value_without_a_schema_and_of_no_known_type_is_refused() -> None:
    with pytest.raises(DataError, match="type object cannot be written without a schema"):
        anything_of([object()])


@pytest.mark.parametrize("stored", [b"\x01", b"\x80\xf0\xb2\x52"], ids=["before midnight", "the day after"])
def test_a_time_that_is_of_no_day_is_refused(stored: bytes) -> None:
    with pytest.raises(InvalidData, match="Time values must use a number of milliseconds"):
        read({"type": "int", "logicalType": "time-millis"}, stored)
