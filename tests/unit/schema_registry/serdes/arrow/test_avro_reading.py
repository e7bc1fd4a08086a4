"""Many records at once become the columns that reading one by one makes of them, for schemas and data of all kinds."""

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats import avro
from schema_registry.formats.avro import AvroSchema
from schema_registry.serdes.arrow.avro_columns import column_plan, column_type
from schema_registry.serdes.arrow.avro_reading import AvroReader, avro_reader
from schema_registry.serdes.arrow.reading import NOT_FITTING, Read
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.avro_reading import reader
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from tests.support.avro_columns import schemas_and_data


def expected(schema: AvroSchema, records: list[bytes]) -> Read:
    """What reading one by one makes of records."""
    plan = column_plan(schema.root)
    read, type_ = reader(plan, Form.TYPED), column_type(plan)
    values, rows, bad = [], [], []
    for row, record in enumerate(records):
        try:
            value = read(record, 0)
            pa.array([value], type=type_)
        except (InvalidData, *NOT_FITTING) as error:
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
def test_many_records_become_what_each_is_by_itself(given_: tuple[AvroSchema, list[bytes]]) -> None:
    schema, records = given_
    assert_same(avro_reader(schema).read(pa.array(records, type=pa.binary())), expected(schema, records))


@given(schemas_and_data(), st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_data_is_bad_exactly_where_it_is_by_itself(
    given_: tuple[AvroSchema, list[bytes]], data: st.DataObject
) -> None:
    schema, records = given_
    damaged = [_damaged(record, data.draw) for record in records]
    assert_same(avro_reader(schema).read(pa.array(damaged, type=pa.binary())), expected(schema, damaged))


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
def test_what_connect_writes_in_its_own_way_is_read(type_: Any, view: Any) -> None:
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
def test_schemas_without_columns_are_refused(definition: Any) -> None:
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
    made = avro_reader(avro.parse(json.dumps({"type": "record", "name": "R0", "fields": fields})))
    assert isinstance(made, AvroReader)
    assert made.is_fast


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
    codec, made = AvroCodec(schema), avro_reader(schema)

    def read(text: str) -> bool:
        records = [codec.encode_json({"i": None, "j": {"string": text}, "k": text}) for _ in range(200)]
        found = [made.read(pa.array(records)).data.field("k").to_pylist() for _ in range(20)]
        return all(set(values) == {text.encode()} for values in found)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, ["a", "bb", "ccc", "dddd"]))
