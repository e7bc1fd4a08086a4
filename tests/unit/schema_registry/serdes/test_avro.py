import io
import json
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats import avro
from schema_registry.formats.schema import ResolvedReference
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from tests.support.avro_values import views

ADDRESS = {"type": "record", "name": "Address", "namespace": "geo", "fields": [{"name": "city", "type": "string"}]}
RICH: dict[str, Any] = {
    "type": "record",
    "name": "Rich",
    "namespace": "shop",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "single", "type": "float"},
        {"name": "twice", "type": "double"},
        {"name": "text", "type": "string"},
        {"name": "raw", "type": "bytes"},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string", "Hash"]}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "address", "type": ["null", "geo.Address"]},
        {"name": "parent", "type": ["null", "Rich"]},
        {"name": "any", "type": ["null", "boolean", "long", "double", "bytes", "string", "Colour", "geo.Address"]},
    ],
}
DOUBTFUL = ["null", "int", "long", "float", "double", "string", "bytes", {"type": "map", "values": ["int", "long"]}]


ADDRESS_REFERENCE = ResolvedReference(name="geo.Address", subject="address", version=1, text=json.dumps(ADDRESS))
RICH_SCHEMA = avro.parse(json.dumps(RICH), [ADDRESS_REFERENCE])


def _codec(schema: object) -> AvroCodec:
    return AvroCodec(avro.parse(json.dumps(schema)))


def _record(name: str, **types: object) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": type_} for key, type_ in types.items()]}


rich = AvroCodec(RICH_SCHEMA)
rich_views = views(RICH_SCHEMA.root)
doubtful = _codec(DOUBTFUL)


@given(rich_views)
@settings(max_examples=60, deadline=None)
def test_json_becomes_bytes_and_json_again(view: Any) -> None:
    data = rich.encode_json(view)
    assert rich.decode_json(data) == view
    assert rich.decode_json(b"frame" + data, 5) == view


@given(rich_views)
@settings(max_examples=60, deadline=None)
def test_values_become_bytes_and_values_again(view: Any) -> None:
    value = rich.decode(rich.encode_json(view))
    data = rich.encode(value)
    assert repr(rich.decode(data)) == repr(value)  # by text, because NaN equals nothing


@given(views(avro.parse(json.dumps(DOUBTFUL)).root))
@settings(max_examples=60, deadline=None)
def test_the_branch_of_a_union_survives_where_python_cannot_tell(view: Any) -> None:
    assert doubtful.decode_json(doubtful.encode_json(view)) == view


@given(rich_views.filter(lambda view: "NaN" not in repr(view) and "Infinity" not in repr(view)))
@settings(max_examples=40, deadline=None)
def test_fastavros_own_json_writer_tells_the_same(view: Any) -> None:
    view["parent"] = None  # it cannot write a record within itself
    structure = RICH_SCHEMA.structure
    data = rich.encode_json(view)
    value = fastavro.schemaless_reader(io.BytesIO(data), structure, None, return_named_type=True)
    text = io.StringIO()
    fastavro.json_writer(text, structure, [value])
    assert json.loads(text.getvalue()) == view


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schema", "value", "view"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-12.34"), "\u00fb."),
        (
            {"type": "fixed", "name": "D", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 1},
            Decimal("1.5"),
            "\x00\x00\x0f",
        ),
        ({"type": "int", "logicalType": "date"}, date(1970, 1, 11), 10),
        ({"type": "int", "logicalType": "time-millis"}, time_of_day(0, 0, 1, 5000), 1005),
        ({"type": "long", "logicalType": "time-micros"}, time_of_day(0, 0, 1, 5), 1_000_005),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            MOMENT.replace(microsecond=123000),
            1_709_209_815_123,
        ),
        ({"type": "long", "logicalType": "timestamp-micros"}, MOMENT, 1_709_209_815_123_456),
        (
            {"type": "string", "logicalType": "uuid"},
            uuid.UUID("89791762-2336-4186-9674-299b90a802e2"),
            "89791762-2336-4186-9674-299b90a802e2",
        ),
    ],
)
def test_logical_types_are_pythons_as_values_and_plain_in_json(
    schema: dict[str, str], value: object, view: object
) -> None:
    name = schema.get("name", schema["type"])
    codec = _codec(_record("W", v=schema, o=["null", schema if name == schema["type"] else name]))
    data = codec.encode({"v": value, "o": value})
    assert codec.decode(data) == {"v": value, "o": value}
    assert codec.decode_json(data) == {"v": view, "o": {name: view}}
    assert codec.encode_json({"v": view, "o": {name: view}}) == data


@given(
    st.decimals(min_value=-99999, max_value=99999, places=2),
    st.integers(-(1 << 50), 1 << 50).map(lambda microseconds: EPOCH + timedelta(microseconds=microseconds)),
)
@settings(max_examples=40, deadline=None)
def test_decimals_and_moments_survive(number: Decimal, moment: datetime) -> None:
    number_type = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    codec = _codec(_record("W", n=number_type, t={"type": "long", "logicalType": "timestamp-micros"}))
    since_1970 = moment - EPOCH
    value = {"n": number, "t": moment}
    data = codec.encode(value)
    assert codec.decode(data) == value
    assert codec.encode_json(codec.decode_json(data)) == data
    assert codec.decode_json(data)["t"] == since_1970 // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("view", "complaint"),
    [
        ([], "/: expected a record shop.R, not an array"),
        ({}, "/: the field 'n' is missing"),
        ({"n": 1, "x": 2}, "/: the record has no field 'x'"),
        ({"n": True}, "/n: expected an int, not a boolean"),
        ({"n": 1.5}, "/n: expected an int, not a number"),
        ({"n": 1 << 31}, "/n: 2147483648 is out of the range of int"),
        ({"n": 1, "u": "x"}, '/u: a value of a union is written as {"type": value}, the type being one of null, '),
        ({"n": 1, "u": {"string": "x", "bytes": "y"}}, "/u: a value of a union"),
        ({"n": 1, "u": {"long": 1}}, "/u: the union has no type 'long', but null, string, shop.E, shop.F, array"),
        ({"n": 1, "u": {"null": None}}, "/u: the union has no type 'null'"),
        ({"n": 1, "u": {"shop.E": "B"}}, "/u/shop.E: shop.E has no symbol 'B'"),
        ({"n": 1, "u": {"shop.F": "abc"}}, "/u/shop.F: shop.F takes 2 bytes, not 3"),
        ({"n": 1, "u": {"shop.F": "a\u0100"}}, "/u/shop.F: bytes are text with one character up to U+00FF per byte"),
        ({"n": 1, "u": {"array": [1, "x"]}}, "/u/array/1: expected a number, not text"),
        ({"n": 1, "u": {"array": [10**400]}}, "/u/array/0: the number is too large"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_place(view: object, complaint: str) -> None:
    codec = _codec(
        {
            "type": "record",
            "name": "shop.R",
            "fields": [
                {"name": "n", "type": "int"},
                {
                    "name": "u",
                    "default": None,
                    "type": [
                        "null",
                        "string",
                        {"type": "enum", "name": "E", "symbols": ["A"]},
                        {"type": "fixed", "name": "F", "size": 2},
                        {"type": "array", "items": "double"},
                    ],
                },
            ],
        }
    )
    with pytest.raises(InvalidData) as refusal:
        codec.encode_json(view)
    assert complaint in str(refusal.value)


def test_fields_that_json_leaves_out_get_their_defaults() -> None:
    nested = {"type": "record", "name": "S", "fields": [{"name": "f", "type": ["int", "null"], "default": 3}]}
    codec = _codec(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "a", "type": ["string", "null"], "default": "x"},
                {"name": "b", "type": ["null", "string"], "default": None},
                {"name": "c", "type": "bytes", "default": "\u00ff"},
                {"name": "d", "type": {"type": "array", "items": ["int", "null"]}, "default": [1]},
                {"name": "e", "type": nested, "default": {}},
                {"name": "g", "type": {"type": "map", "values": ["long", "null"]}, "default": {"k": 2}},
            ],
        }
    )
    assert codec.decode_json(codec.encode_json({})) == {
        "a": {"string": "x"},
        "b": None,
        "c": "\u00ff",
        "d": [{"int": 1}],
        "e": {"f": {"int": 3}},
        "g": {"k": {"long": 2}},
    }


def test_the_schema_bytes_itself_is_written_without_a_length() -> None:
    codec = _codec("bytes")
    assert codec.encode(b"abc") == b"abc"
    assert codec.decode(b"frameabc", 5) == b"abc"
    assert codec.encode_json("a\u00ff") == b"a\xff"
    assert codec.decode_json(b"a\xff") == "a\u00ff"
    with pytest.raises(InvalidData, match="asks for bytes, not int"):
        codec.encode(3)


def test_a_readers_schema_adds_defaults_and_leaves_out_the_rest() -> None:
    writer = avro.parse(json.dumps(_record("R", a="int", b="int")))
    fields = [{"name": "b", "type": "long"}, {"name": "c", "type": "string", "default": "x"}]
    reader = avro.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    data = AvroCodec(writer).encode({"a": 1, "b": 2})
    assert AvroCodec(writer, reader=reader).decode(data) == {"b": 2, "c": "x"}


def test_a_readers_schema_that_cannot_read_is_told() -> None:
    writer, reader = avro.parse('"string"'), avro.parse('"int"')
    with pytest.raises(InvalidData):
        AvroCodec(writer, reader=reader).decode(b"\x02a")


@pytest.mark.parametrize(
    "value",
    [None, 5, {}, {"n": "x"}, {"n": None}, {"n": 1 << 70}, {"n": 1, "d": "x"}, {"n": 1, "s": "\ud800"}, [("n", 1)]],
)
def test_values_that_do_not_fit_are_refused(value: object) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "n", "type": "long"},
            {"name": "d", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
            {"name": "s", "type": "string", "default": ""},
        ],
    }
    with pytest.raises(InvalidData):
        _codec(schema).encode(value)


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("int", b""),
        ("int", b"\xff" * 30),
        ("string", b"\x09abc"),
        ("string", b"\x08abc"),
        ("string", b"\x04\xff\xfe"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\xff\x7f"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x08"),
        (["null", "int"], b"\x0a"),
        ({"type": "fixed", "name": "F", "size": 4}, b"ab"),
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f"),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\xfe" + b"\xff" * 8 + b"\x01"),
        ({"type": "string", "logicalType": "uuid"}, b"\x04ab"),
    ],
)
def test_bytes_that_do_not_fit_are_refused(schema: object, data: bytes) -> None:
    with pytest.raises(InvalidData, match="does not fit the Avro schema"):
        _codec(schema).decode(data)


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_garbage_is_read_or_refused_but_never_worse(data: bytes) -> None:
    for read in (rich.decode, rich.decode_json):
        try:
            read(data)
        except InvalidData:
            pass


@pytest.mark.parametrize("size", [800, 5_000, 1_000_000])
@pytest.mark.parametrize("read", [AvroCodec.decode, AvroCodec.decode_json])
def test_data_that_nests_without_end_is_refused(size: int, read: Callable[[AvroCodec, bytes], object]) -> None:
    node = _codec(_record("N", next=["null", "N"]))
    with pytest.raises(InvalidData):
        read(node, b"\x02" * size + b"\x00")


@pytest.mark.parametrize("links", [1, 5, 25])
def test_long_chains_of_records_do_not_help_data_to_nest(links: int) -> None:
    chain = _record(f"R{links}", next=["null", "R1"])
    for number in range(links - 1, 0, -1):
        chain = _record(f"R{number}", next=chain)
    codec = _codec(chain)
    for size in (10, 100, 400, 700, 740, 760, 5_000):
        try:
            codec.decode(b"\x02" * size + b"\x00")
        except InvalidData:
            assert size > 10


def test_values_that_nest_without_end_are_refused() -> None:
    node = _codec(_record("N", next=["null", "N"]))
    value: dict[str, Any] = {"next": None}
    for _ in range(20_000):
        value = {"next": value}
    with pytest.raises(InvalidData, match="deeper than"):
        node.encode(value)
    while value["next"]:  # taken apart by hand, because the interpreter would do it on the stack
        value = value["next"]


def test_a_recursive_type_of_ordinary_depth_is_read_by_both_readers() -> None:
    tree = _codec(_record("T", v="string", c={"type": "array", "items": "T"}))
    for width in (3, 2_000):
        value = {"v": "root", "c": [{"v": f"{n}", "c": []} for n in range(width)]}
        assert tree.decode(tree.encode(value)) == value
        assert tree.decode_json(tree.encode_json(value)) == value


@pytest.mark.parametrize("items", ["null", _record("E"), {"type": "fixed", "name": "F", "size": 0}])
def test_arrays_of_nothing_are_refused(items: object) -> None:
    with pytest.raises(UnusableSchema, match="take no bytes"):
        _codec({"type": "array", "items": items})


def test_records_that_double_at_every_level_are_refused() -> None:
    inner = _record("R0", f="null")
    for level in range(1, 30):
        inner = _record(f"R{level}", a=inner, b=f"R{level - 1}")
    with pytest.raises(UnusableSchema, match="more than 100000 parts"):
        _codec(inner)
