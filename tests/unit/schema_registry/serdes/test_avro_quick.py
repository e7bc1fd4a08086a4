"""Straight-line code writes what the careful writer writes, or nothing."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.formats import avro
from schema_registry.formats.avro_types import Record
from schema_registry.serdes.avro_quick import LEFT_OVER, Quick, quick_record
from schema_registry.serdes.avro_writing import Mismatch, Write, Writings, varint
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


def _root(fields: dict[str, Any]) -> Record:
    listed = [{"name": name, "type": type_} for name, type_ in fields.items()]
    root = avro.parse(json.dumps({"type": "record", "name": "All", "fields": listed}), []).root
    assert isinstance(root, Record)
    return root


ROOT = _root(FIELDS)
WRITE: Write = Writings().of(ROOT)


def _quick(root: Record) -> Quick:
    made = quick_record(root, Writings())
    assert made is not None
    return made


QUICK = _quick(ROOT)


def _carefully(view: Any) -> bytes:
    parts: list[bytes] = []
    WRITE(view, parts.append)
    return b"".join(parts)


def _usual(view: dict[str, Any]) -> bool:
    """NaN and its like are text in JSON, and not what a number usually is."""
    return all(isinstance(view[name], float) for name in ("near", "nearer"))


@given(views(ROOT))
@settings(max_examples=200, deadline=None)
def test_what_is_as_usual_is_written_as_the_careful_writer_does(view: dict[str, Any]) -> None:
    if _usual(view):
        assert QUICK(view) == _carefully(view)


_ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=3),
    st.just("\ud800"),
    st.just("x" * 2000),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


@given(views(ROOT), st.sampled_from([*FIELDS, "unknown"]), _ANYTHING, st.booleans())
@settings(max_examples=500, deadline=None)
def test_what_is_not_is_written_alike_or_left_to_it(
    view: dict[str, Any], name: str, value: Any, is_missing: bool
) -> None:
    changed = {**view, name: value}
    if is_missing:
        changed.pop(next(iter(changed)))
    try:
        written = QUICK(changed)
    except LEFT_OVER:
        return
    assert written == _carefully(changed)


@pytest.mark.parametrize("view", [None, [], "text", 5, True, {}, ["a"] * len(FIELDS)])
def test_what_is_no_record_is_left_over(view: Any) -> None:
    with pytest.raises(LEFT_OVER):
        QUICK(view)
    with pytest.raises(Mismatch):
        _carefully(view)


def test_a_record_of_nulls_takes_no_bytes() -> None:
    assert _quick(_root({"a": "null", "b": "null"}))({"a": None, "b": None}) == b""


@pytest.mark.parametrize("fields", [{}, {f"f{number}": "int" for number in range(201)}])
def test_no_code_is_made_where_it_would_not_help(fields: dict[str, Any]) -> None:
    assert quick_record(_root(fields), Writings()) is None


@given(st.integers(-(1 << 63), (1 << 63) - 1))
@settings(max_examples=300, deadline=None)
def test_numbers_are_read_again(number: int) -> None:
    rest = 0
    for place, byte in enumerate(varint(number)):
        rest |= (byte & 0x7F) << (7 * place)
    assert number == (rest >> 1) ^ -(rest & 1)
    assert all(byte & 0x80 for byte in varint(number)[:-1])
    assert not varint(number)[-1] & 0x80
