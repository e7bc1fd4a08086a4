"""Avro data becomes the same columns as through Connect's converter, for schemas and data of all kinds."""

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connect.api.data import Schema
from connect.api.errors import DataError
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.values import reading
from connect.converters.avro.schemas import to_connect_schema
from schema_registry.formats import avro
from schema_registry.formats.avro import AvroSchema
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from streams.spark.decoding.avro_reading import AvroReader, avro_reader
from streams.spark.decoding.reading import NOT_FITTING, Read
from tests.support.arrow_of_connect import arrow_type, arrow_value
from tests.support.avro_schemas import schemas
from tests.support.avro_values import views

CONFIG = AvroConfig.parse({"schema.registry.url": "http://registry"})
LOGICAL: dict[str, list[Any]] = {
    "int": [
        {"type": "int", "logicalType": "date"},
        {"type": "int", "connect.type": "int8"},
        {"type": "int", "connect.type": "int16"},
        {"type": "int", "connect.name": "org.apache.kafka.connect.data.Date"},
    ],
    "long": [
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "long", "logicalType": "timestamp-micros"},
        {"type": "long", "logicalType": "time-micros"},
        {"type": "long", "logicalType": "local-timestamp-millis"},
    ],
    "bytes": [
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 3},
    ],
    "string": [{"type": "string", "logicalType": "uuid"}],
}


def with_logical_types(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with some of its types turned into logical ones, and nulls within others turned into texts."""
    match schema:
        case "null":
            return "string"
        case str():
            return draw(st.sampled_from([schema, *LOGICAL.get(schema, [])]))
        case list():
            return [branch if branch == "null" else with_logical_types(draw, branch) for branch in schema]
        case {"type": "array"}:
            return {**schema, "items": with_logical_types(draw, schema["items"])}
        case {"type": "map"}:
            return {**schema, "values": with_logical_types(draw, schema["values"])}
        case {"type": "record"}:
            fields = [{"name": f["name"], "type": with_logical_types(draw, f["type"])} for f in schema["fields"]]
            return {**schema, "fields": fields or [{"name": "only", "type": "int"}]}
        case {"type": "fixed"}:
            size = draw(st.sampled_from([1, 3, 4, 8, 12, 16, 20]))
            decimal = {"logicalType": "decimal", "precision": min(size * 2, 38), "scale": 1}
            return {**schema, "size": size, **draw(st.sampled_from([{}, decimal]))}
        case _:
            return schema


@st.composite
def schemas_and_data(draw: st.DrawFn) -> tuple[AvroSchema, list[bytes]]:
    definition = with_logical_types(draw, draw(schemas(extras=False, namespaces=False)))
    try:
        schema = avro.parse(json.dumps(definition))
        avro_reader(schema)
        codec = AvroCodec(schema)
    except (ValueError, UnusableSchema):
        assume(False)
        raise
    found = draw(st.lists(views(schema.root), min_size=1, max_size=12))
    return schema, [codec.encode_json(view) for view in found]


def connects(schema: AvroSchema) -> tuple[Schema, Callable[[bytes, int], Any]]:
    made = to_connect_schema(schema.root, CONFIG)
    assert made is not None
    return made, reading(schema.root, made, CONFIG)


def expected(schema: AvroSchema, records: list[bytes]) -> Read:
    """What the converter makes of records, one by one."""
    made, read = connects(schema)
    type_ = arrow_type(made)
    values, rows, bad = [], [], []
    for row, record in enumerate(records):
        try:
            value = arrow_value(made, read(record, 0))
            pa.array([value], type=type_)
        except (DataError, InvalidData, *NOT_FITTING) as error:
            bad.append((row, error))
        else:
            values.append(value)
            rows.append(row)
    return Read(pa.array(values, type=type_), rows, bad)  # type: ignore[arg-type]


def as_text(array: pa.Array) -> str:
    """Equal for equal arrays, NaN included."""
    return repr(array.to_pylist())


def assert_same(read: Read, wanted: Read) -> None:
    assert read.data.type.equals(wanted.data.type)
    assert list(read.rows) == list(wanted.rows)
    assert sorted(row for row, _ in read.bad) == [row for row, _ in wanted.bad]
    assert as_text(read.data) == as_text(wanted.data)
    read.data.validate(full=True)


@given(schemas_and_data())
@settings(max_examples=150, deadline=None)
def test_data_becomes_what_the_converter_makes_of_it(given_: tuple[AvroSchema, list[bytes]]) -> None:
    schema, records = given_
    reader = avro_reader(schema)
    assert_same(reader.read(pa.array(records, type=pa.binary())), expected(schema, records))


@given(schemas_and_data())
@settings(max_examples=80, deadline=None)
def test_the_careful_way_reads_the_same(given_: tuple[AvroSchema, list[bytes]]) -> None:
    schema, records = given_
    reader = avro_reader(schema)
    if not isinstance(reader, AvroReader):
        return
    assert_same(reader._careful(records, range(len(records))), expected(schema, records))


@given(schemas_and_data(), st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_data_is_bad_exactly_where_the_converter_says_so(
    given_: tuple[AvroSchema, list[bytes]], data: st.DataObject
) -> None:
    schema, records = given_
    reader = avro_reader(schema)
    damaged = [_damaged(record, data.draw) for record in records]
    assert_same(reader.read(pa.array(damaged, type=pa.binary())), expected(schema, damaged))


def _damaged(record: bytes, draw: Callable[[Any], Any]) -> bytes:
    place: int = draw(st.integers(0, len(record)))
    more: bytes = draw(st.binary(min_size=1, max_size=3))
    match draw(st.sampled_from(["whole", "cut", "changed", "longer"])):
        case "cut":
            return record[:place]
        case "changed":
            return record[:place] + more + record[place + 1 :]
        case "longer":
            return record + more
        case _:
            return record


@given(st.lists(st.integers(0, 86_399_999), min_size=1))
@settings(deadline=None)
def test_times_of_day_are_text_as_python_writes_them(times: list[int]) -> None:
    schema = avro.parse('{"type": "int", "logicalType": "time-millis"}')
    records = [AvroCodec(schema).encode_json(time) for time in times]
    assert_same(avro_reader(schema).read(pa.array(records)), expected(schema, records))


MAP_ENTRY = {
    "type": "record",
    "name": "MapEntry",
    "namespace": "io.confluent.connect.avro",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
}


@pytest.mark.parametrize(
    ("type_", "view"),
    [
        ({"type": "array", "items": MAP_ENTRY}, [{"key": 1, "value": "a"}, {"key": 1, "value": "b"}]),
        (
            {
                "type": "array",
                "items": {**MAP_ENTRY, "fields": [{"name": n, "type": "string"} for n in ("key", "value")]},
            },
            [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}],
        ),
        (
            {
                "type": "bytes",
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "connect.parameters": {"scale": "2"},
            },
            "\x01\x00",
        ),
        (
            {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": 64,
                "scale": 2,
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"},
            },
            "\x01\x00",
        ),
        (["null", "string", {"type": "enum", "name": "E", "symbols": ["A", "B"]}], {"E": "B"}),
        (
            [{"type": "record", "name": "n.R", "fields": [{"name": "x", "type": "int"}]}, "null", "long"],
            {"n.R": {"x": 1}},
        ),
    ],
    ids=[
        "entries",
        "text entries",
        "decimal by name",
        "precision by parameter",
        "enum in a union",
        "record in a union",
    ],
)
def test_what_connect_writes_itself_is_read_as_it_reads_it(type_: Any, view: Any) -> None:
    schema = avro.parse(json.dumps({"type": "record", "name": "R0", "fields": [{"name": "f", "type": type_}]}))
    record = AvroCodec(schema).encode_json({"f": view})
    assert_same(avro_reader(schema).read(pa.array([record])), expected(schema, [record]))


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]},
        {"type": "record", "name": "R", "fields": []},
        {"type": "record", "name": "R", "fields": [{"name": "f", "type": "null"}]},
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "f", "type": {"type": "bytes", "logicalType": "decimal", "precision": 50}}],
        },
        {"type": "array", "items": "null"},
    ],
)
def test_schemas_without_columns_are_told(definition: Any) -> None:
    with pytest.raises(UnusableSchema):
        avro_reader(avro.parse(json.dumps(definition)))


FIELDS: list[Any] = [
    {"name": "a", "type": "int"},
    {"name": "b", "type": ["null", "string"]},
    {"name": "c", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "d", "type": "boolean"},
    {"name": "e", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
NESTED: list[Any] = [
    {"name": "f", "type": {"type": "map", "values": ["null", "string", "int"]}},
    {"name": "g", "type": ["null", {"type": "record", "name": "I", "fields": [{"name": "x", "type": "double"}]}]},
    {"name": "h", "type": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 8}}},
]
BYTES: list[Any] = [
    {"name": "i", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}]},
    {"name": "j", "type": ["string", "bytes", "long"]},
    {"name": "k", "type": "bytes"},
]
LONG_LIST: list[Any] = [{"name": "l", "type": {"type": "array", "items": "int"}}]


def many_views(count: int, r: random.Random) -> list[dict[str, Any]]:
    digits = [r.randbytes(r.randrange(8)).decode("latin-1") for _ in range(50)]
    return [
        {
            "a": r.choice([0, 5, -(2**31), 2**31 - 1]),
            "b": r.choice([None, {"string": "ž" * r.randrange(9)}]),
            "c": r.choice("AB"),
            "d": r.random() < 0.5,
            "e": r.choice([0, 1_700_000_000_000, -5]),
            "f": {str(n): r.choice([None, {"string": "x"}, {"int": 7}]) for n in range(r.randrange(3))},
            "g": r.choice([None, {"I": {"x": 1.5}}]),
            "h": ["abcdefgh"] * r.randrange(3),
            "i": r.choice([None, {"bytes": r.choice(digits)}]),
            "j": r.choice([{"string": "a"}, {"bytes": r.choice(digits)}, {"long": -1}]),
            "k": r.choice(digits),
            "l": [1] * r.choice([0, 3, 100]),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("large", [False, True], ids=["plain", "large"])
@pytest.mark.parametrize(
    "fields",
    [FIELDS, FIELDS + NESTED, FIELDS + BYTES, FIELDS + NESTED + BYTES, FIELDS + LONG_LIST, FIELDS + BYTES + LONG_LIST],
    ids=["flat", "nested", "bytes", "nested with bytes", "long lists", "long lists with bytes"],
)
@pytest.mark.parametrize("share", [0, 0.01, 0.3, 1])
def test_bad_records_among_many_are_found_and_spoil_no_other(fields: list[Any], share: float, *, large: bool) -> None:
    schema = avro.parse(json.dumps({"type": "record", "name": "R0", "fields": fields}))
    r = random.Random(len(fields))
    codec, names = AvroCodec(schema), [field["name"] for field in fields]
    records = [codec.encode_json({name: view[name] for name in names}) for view in many_views(600, r)]
    damaged = [_hit(record, r) if r.random() < share else record for record in records]
    type_ = pa.large_binary() if large else pa.binary()
    assert_same(avro_reader(schema).read(pa.array([b"skipped", *damaged], type=type_)[1:]), expected(schema, damaged))


def _hit(record: bytes, r: random.Random) -> bytes:
    place = r.randrange(len(record))
    match r.randrange(4):
        case 0:
            return record[:place]
        case 1:
            return record[:place] + bytes([r.randrange(256)]) + record[place + 1 :]
        case 2:
            return b""
        case _:
            return r.randbytes(40)


@pytest.mark.parametrize("fields", [FIELDS, FIELDS + NESTED, FIELDS + BYTES, FIELDS + LONG_LIST])
def test_what_is_common_is_read_the_fast_way(fields: list[Any]) -> None:
    reader = avro_reader(avro.parse(json.dumps({"type": "record", "name": "R0", "fields": fields})))
    assert isinstance(reader, AvroReader)
    assert reader.is_fast


def test_a_list_of_any_number_of_blocks_takes_no_time() -> None:
    schema = avro.parse(json.dumps({"type": "record", "name": "R0", "fields": LONG_LIST}))
    endless = b"\x02\x02" * 200_000
    read = avro_reader(schema).read(pa.array([endless, b"\x02\x02\x00", endless + b"\x00"]))
    assert [len(value["l"]) for value in read.data.to_pylist()] == [1, 200_000]
    assert [row for row, _ in read.bad] == [0]


def test_a_union_of_very_many_types_is_read() -> None:
    branches = [{"type": "enum", "name": f"E{n}", "symbols": ["A", f"B{n}"]} for n in range(200)]
    schema = avro.parse(json.dumps({"type": "record", "name": "R0", "fields": [{"name": "f", "type": branches}]}))
    records = [AvroCodec(schema).encode_json({"f": {f"E{n}": f"B{n}"}}) for n in range(200)]
    assert_same(avro_reader(schema).read(pa.array(records)), expected(schema, records))


def test_threads_do_not_see_each_others_bytes() -> None:
    schema = avro.parse(json.dumps({"type": "record", "name": "R0", "fields": BYTES}))
    codec, reader = AvroCodec(schema), avro_reader(schema)

    def read(text: str) -> bool:
        records = [codec.encode_json({"i": None, "j": {"string": text}, "k": text}) for _ in range(200)]
        found = [reader.read(pa.array(records)).data.field("k").to_pylist() for _ in range(20)]
        return all(set(values) == {text.encode()} for values in found)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, ["a", "bb", "ccc", "dddd"]))
