"""Columns become the Avro data that they were read from; fastavro reads it, too."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from schema_registry.formats import avro
from schema_registry.formats.avro import AvroSchema
from schema_registry.serdes.arrow.avro_reading import avro_reader
from schema_registry.serdes.arrow.avro_writing import AvroWriter
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.errors import InvalidData
from tests.support.avro_columns import schemas_and_data

MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}


def schema_of(**types: Any) -> AvroSchema:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return avro.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))


def written(schema: AvroSchema, rows: pa.Array) -> list[Any]:
    data = AvroWriter(schema).write(rows)
    data.validate(full=True)
    return [AvroCodec(schema).decode(record) for record in data.to_pylist()]


@given(schemas_and_data())
@settings(max_examples=200, deadline=None)
def test_what_was_read_is_written_again(given_: tuple[AvroSchema, list[bytes]]) -> None:
    schema, records = given_
    reader = avro_reader(schema)
    read = reader.read(pa.array([b"skipped", *records], type=pa.binary())[1:])
    again = AvroWriter(schema).write(read.data)
    assert AvroWriter(schema).type.equals(reader.type)
    found = reader.read(again)
    assert not found.bad
    assert repr(found.data.to_pylist()) == repr(read.data.to_pylist())


def test_every_type_is_written_as_fastavro_reads_it() -> None:
    schema = schema_of(
        flag="boolean",
        small="int",
        large=["null", "long"],
        near="float",
        far="double",
        text="string",
        raw="bytes",
        colour={"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]},
        four={"type": "fixed", "name": "F", "size": 4},
        price=DECIMAL,
        cost={"type": "fixed", "name": "D", "size": 6, "logicalType": "decimal", "precision": 12, "scale": 3},
        day={"type": "int", "logicalType": "date"},
        opens={"type": "int", "logicalType": "time-millis"},
        at=["null", {"type": "long", "logicalType": "timestamp-millis"}],
        tags={"type": "array", "items": ["null", "string"]},
        counts={"type": "map", "values": "long"},
        inner={"type": "record", "name": "I", "fields": [{"name": "x", "type": ["string", "null"]}]},
    )
    values: list[dict[str, Any]] = [
        {
            "flag": True,
            "small": -(1 << 31),
            "large": (1 << 63) - 1,
            "near": 1.5,
            "far": -2.25,
            "text": "grüße" * 300,
            "raw": b"\x00\xff",
            "colour": "GREEN",
            "four": b"1234",
            "price": Decimal("-12345678901234567.89"),
            "cost": Decimal("-0.128"),
            "day": dt.date(1, 1, 1),
            "opens": dt.time(23, 59, 59, 999000),
            "at": MOMENT,
            "tags": ["a", None, "c"],
            "counts": {"a": 1, "b": -1},
            "inner": {"x": None},
        },
        {
            "flag": False,
            "small": 0,
            "large": None,
            "near": 0.0,
            "far": 1e300,
            "text": "",
            "raw": b"",
            "colour": "RED",
            "four": b"\x00" * 4,
            "price": Decimal("0.00"),
            "cost": Decimal("0.127"),
            "day": dt.date(9999, 12, 31),
            "opens": dt.time(0),
            "at": None,
            "tags": [],
            "counts": {},
            "inner": {"x": "y"},
        },
    ]
    rows = pa.array(values * 3, AvroWriter(schema).type)
    assert written(schema, rows) == values * 3
    assert written(schema, rows[1:3]) == [values[1], values[0]]


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 255, 256, -256, 32767, 32768, 10**37, -(10**37)])
def test_decimals_take_as_few_bytes_as_in_java(number: int) -> None:
    schema = schema_of(d={"type": "bytes", "logicalType": "decimal", "precision": 38})
    (data,) = AvroWriter(schema).write(pa.array([{"d": Decimal(number)}], AvroWriter(schema).type)).to_pylist()
    magnitude = number if number >= 0 else -number - 1
    assert data[1:] == number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def test_columns_of_like_types_are_written_and_missing_ones_are_defaults() -> None:
    fields: list[Any] = [
        {"name": "n", "type": "long"},
        {"name": "t", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "d", "type": ["string", "null"], "default": "x"},
        {"name": "e", "type": DECIMAL},
    ]
    schema = avro.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    rows = pa.StructArray.from_arrays(
        [
            pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
            pa.array(["a"]).dictionary_encode(),
            pa.array([7], pa.uint8()),
            pa.array([MOMENT], pa.timestamp("ns", "Europe/Lisbon")),
        ],
        names=["e", "t", "n", "at"],
    )
    assert written(schema, rows) == [{"n": 7, "t": "a", "at": MOMENT, "d": "x", "e": Decimal("1.50")}]


def test_a_union_is_written_by_the_first_field_that_is_set() -> None:
    schema = schema_of(u=["null", "string", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}])
    values = [{"u": {"string": "a", "P": None}}, {"u": {"string": None, "P": {"x": 1}}}, {"u": None}]
    rows = pa.array(values, AvroWriter(schema).type)
    assert written(schema, rows) == [{"u": "a"}, {"u": {"x": 1}}, {"u": None}]


@pytest.mark.parametrize(
    ("type_", "column", "problem"),
    [
        ("int", pa.array([1 << 31]), "a: 2147483648 is out of the range"),
        ("int", pa.array([1, None]), "a: there are nulls"),
        ("int", pa.array([1.5]), "a: expected whole numbers, not double"),
        ("string", pa.array([b"x"]), "a: expected text, not binary"),
        ("boolean", pa.array([1]), "a: expected booleans"),
        (["string", "long"], pa.array([{"string": None}], pa.struct([("string", pa.string())])), "a: there are nulls"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"]), "a: E has no symbol 'B'"),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"abc"]), "a: F takes 2 bytes, not 3"),
        ({"type": "array", "items": "int"}, pa.array([[1, None]]), "a: there are nulls"),
        ({"type": "array", "items": "int"}, pa.array([1]), "a: expected lists or maps"),
        ({"type": "map", "values": "int"}, pa.array([[1]]), "a: expected maps"),
        (DECIMAL, pa.array([Decimal("1.234")]), "a: expected decimal"),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.array([MOMENT.replace(tzinfo=None)]), "in UTC"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name(type_: Any, column: pa.Array, problem: str) -> None:
    with pytest.raises(InvalidData, match=problem):
        AvroWriter(schema_of(a=type_)).write(pa.StructArray.from_arrays([column], names=["a"]))


def test_unknown_and_missing_columns_are_refused() -> None:
    writer = AvroWriter(schema_of(a="int"))
    with pytest.raises(InvalidData, match="the record R has no field b"):
        writer.write(pa.array([{"a": 1, "b": 2}]))
    with pytest.raises(InvalidData, match="a: there is no such column"):
        writer.write(pa.array([{}], pa.struct([])))
    with pytest.raises(InvalidData, match="a row is null"):
        writer.write(pa.array([None], writer.type))


def test_a_null_row_is_data_where_the_schema_itself_takes_null() -> None:
    rows = pa.array([True, None])
    assert written(avro.parse('["null", "boolean"]'), rows) == [True, None]
    with pytest.raises(InvalidData, match="a row is null"):
        AvroWriter(avro.parse('["boolean", "string"]')).write(pa.array([None], pa.struct([("string", pa.string())])))


def test_bytes_alone_are_written_without_a_length() -> None:
    schema = avro.parse('"bytes"')
    assert AvroWriter(schema).write(pa.array([b"abc", b""])).to_pylist() == [b"abc", b""]


PLAIN = {
    "flag": "boolean",
    "small": "int",
    "large": ["null", "long"],
    "near": ["float", "null"],
    "far": "double",
    "text": ["null", "string"],
    "colour": ["null", {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]}],
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "opens": {"type": "int", "logicalType": "time-millis"},
    "at": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
    "tags": ["null", {"type": "array", "items": ["null", "string"]}],
    "inner": {"type": "record", "name": "I", "fields": [{"name": "n", "type": {"type": "array", "items": "int"}}]},
}


def some_values(number: int) -> dict[str, Any]:
    is_null = number % 3 == 0
    return {
        "flag": number % 2 == 0,
        "small": -number,
        "large": None if is_null else 1 << number % 63,
        "near": None if is_null else number / 2,
        "far": number / 3,
        "text": None if is_null else "ž" * (number % 90),
        "colour": None if is_null else "GREEN",
        "day": None if is_null else dt.date(1950, 1, 1) + dt.timedelta(number),
        "opens": dt.time(number % 24),
        "at": None if is_null else MOMENT + dt.timedelta(seconds=number),
        "tags": None if is_null else [str(number), None][: number % 3],
        "inner": {"n": list(range(number % 4))},
    }


@pytest.mark.parametrize(("start", "end"), [(0, 200), (1, 4), (3, 150), (7, 7)])
def test_plain_columns_are_written_all_at_once_as_fastavro_reads_them(start: int, end: int) -> None:
    schema = schema_of(**PLAIN)
    values = [some_values(number) for number in range(200)]
    rows = pa.array(values, AvroWriter(schema).type)
    assert AvroWriter(schema).is_fast
    assert written(schema, rows[start:end]) == values[start:end]


def test_plain_columns_are_the_same_bytes_either_way() -> None:
    schema = schema_of(**PLAIN)
    with_bytes = schema_of(**PLAIN, raw="bytes")
    values = [some_values(number) for number in range(200)]
    data = AvroWriter(schema).write(pa.array(values, AvroWriter(schema).type)).to_pylist()
    rows = pa.array([{**value, "raw": b""} for value in values], AvroWriter(with_bytes).type)
    assert [record + b"\x00" for record in data] == AvroWriter(with_bytes).write(rows).to_pylist()


def test_no_rows_are_no_data() -> None:
    writer = AvroWriter(schema_of(a="int", b={"type": "array", "items": DECIMAL}))
    assert len(writer.write(pa.array([], writer.type))) == 0
