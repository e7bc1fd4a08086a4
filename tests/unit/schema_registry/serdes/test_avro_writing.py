"""Generated functions write what fastavro reads as the same value, or say what is wrong; and read what it writes."""

import io
import json
import math
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats import avro
from schema_registry.formats.avro_types import Record
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.avro_mismatch import Form, Mismatch
from schema_registry.serdes.avro_numbers import read_number, varint
from schema_registry.serdes.avro_plan import JsonEncoding, Meaning
from schema_registry.serdes.avro_reading import reader
from schema_registry.serdes.avro_writing import writer
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from tests.support.avro_values import views

FIELDS: dict[str, Any] = {
    "text": "string",
    "raw": "bytes",
    "small": "int",
    "large": "long",
    "near": "float",
    "nearer": "double",
    "flag": "boolean",
    "nothing": "null",
    "colour": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]},
    "four": {"type": "fixed", "name": "Four", "size": 4},
    "list": {"type": "array", "items": "long"},
    "map": {"type": "map", "values": ["null", "string"]},
    "inner": {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": ["null", "int"], "default": None}]},
}
_ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["\ud800", "x" * 2000, "NaN", "-Infinity"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def _root(fields: dict[str, Any]) -> Record:
    listed = [{"name": name, "type": type_} for name, type_ in fields.items()]
    root = avro.parse(json.dumps({"type": "record", "name": "All", "fields": listed}), []).root
    assert isinstance(root, Record)
    return root


def _codec(schema: object) -> AvroCodec:
    return AvroCodec(avro.parse(json.dumps(schema)))


ROOT = _root(FIELDS)
WRITE = writer(JsonEncoding().of(ROOT), Form.JSON)
READ = reader(JsonEncoding().of(ROOT), Form.JSON)


@given(views(ROOT), st.sampled_from([*FIELDS, "unknown"]), _ANYTHING, st.booleans())
@settings(max_examples=500, deadline=None)
def test_json_is_written_as_it_is_read_again_or_refused_with_its_place(
    view: dict[str, Any], name: str, value: Any, is_missing: bool
) -> None:
    changed = {**view, name: value}
    if is_missing:
        changed.pop(next(iter(changed)))
    data = _written_or_refused(changed)
    if data is None:
        return
    assert changed.keys() == view.keys()
    found_again = READ(data, 0)
    assert found_again.keys() == changed.keys()
    assert _is_same(found_again[name], value)
    assert READ(WRITE(found_again), 0) == found_again


def _written_or_refused(view: Any) -> bytes | None:
    try:
        return WRITE(view)
    except Mismatch as found:
        if found.problem == "the value does not fit":  # which would say nothing
            raise
        return None


def _is_same(found: Any, given: Any) -> bool:
    """Equal, but for the digits that a number of 32 bits does not hold, numbers that JSON has not, and defaults."""
    if isinstance(given, float) and not math.isfinite(given):
        return found in ("NaN", "Infinity", "-Infinity")
    if isinstance(found, float) and isinstance(given, int | float):
        return math.isclose(found, given, rel_tol=1e-6, abs_tol=1e-30)
    return bool(found == given or given == {})


@pytest.mark.parametrize("view", [None, [], "text", 5, True, {}, ["a"] * len(FIELDS)])
def test_what_is_not_a_record_is_refused(view: Any) -> None:
    with pytest.raises(Mismatch, match="expected a record All|is missing"):
        WRITE(view)


@pytest.mark.parametrize("count", [0, 1, 250, 1000])
def test_records_of_any_size_are_read_and_written(count: int) -> None:
    fields = {f"f{number}": ["null", "int", "string"] for number in range(count)}
    root = _root(fields)
    view = {name: {"int": number} if number % 3 else None for number, name in enumerate(fields)}
    data = AvroCodec(avro.AvroSchema(root, {})).encode_json(view)
    assert AvroCodec(avro.AvroSchema(root, {})).decode_json(data) == view


def test_a_union_may_have_more_types_than_one_byte_counts() -> None:
    union = [{"type": "enum", "name": f"E{number}", "symbols": ["A"]} for number in range(200)]
    codec = _codec({"type": "record", "name": "R", "fields": [{"name": "u", "type": union}]})
    assert codec.decode_json(codec.encode_json({"u": {"E150": "A"}})) == {"u": {"E150": "A"}}


def test_an_enum_may_have_more_symbols_than_one_byte_counts() -> None:
    codec = _codec({"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(300)]})
    assert codec.decode_json(codec.encode_json("S299")) == "S299"


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        ("int", b"\x80\x80\x80\x80\x20", "out of the range of int"),
        ("boolean", b"\x02", "neither 0 nor 1"),
        (["null", "int"], b"\x01\x02", "no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "no such symbol"),
        ("string", b"\x0aabc", "ends too soon"),
        ("double", b"1234", "ends too soon"),
        ("string", b"\x01", "ends too soon"),
        ("long", b"\xff" * 11, "more than 64 bits"),
        ("long", b"\xff" * 9 + b"\x02", "more than 64 bits"),
        ({"type": "map", "values": "int"}, b"\x02\x02", "ends too soon"),
    ],
)
def test_bytes_that_are_not_avro_are_refused_with_the_reason(schema: object, data: bytes, reason: str) -> None:
    with pytest.raises(InvalidData, match=reason):
        _codec(schema).decode_json(data)


@pytest.mark.parametrize("data", [b"\x03\x04\x02a\x02b\x00", b"\x02\x02a\x02\x02b\x00", b"\x04\x02a\x02b\x00"])
def test_lists_may_come_in_blocks_with_their_size_or_without(data: bytes) -> None:
    schema = {"type": "array", "items": "string"}
    assert _codec(schema).decode_json(data) == ["a", "b"]
    assert fastavro.schemaless_reader(io.BytesIO(data), schema, None) == ["a", "b"]


@given(st.integers(-(1 << 63), (1 << 63) - 1))
@settings(max_examples=300, deadline=None)
def test_numbers_are_read_again(number: int) -> None:
    data = varint(number)
    assert read_number(b"x" + data, 1) == (number, 1 + len(data))
    assert fastavro.schemaless_reader(io.BytesIO(data), "long", None) == number


def test_a_record_that_holds_itself_has_a_json_encoding_but_no_other_meaning() -> None:
    root = avro.parse('{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]}]}').root
    assert JsonEncoding().of(root) is not None
    with pytest.raises(UnusableSchema, match="recursive"):
        Meaning().of(root)
