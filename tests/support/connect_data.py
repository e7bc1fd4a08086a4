"""Schemas of Connect and values that fit them, made by Hypothesis."""

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

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
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    array,
    decimal,
    mapping,
    struct,
)

Typed = tuple[Schema, Any]

_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


def _integers(bits: int) -> st.SearchStrategy[int]:
    limit = 1 << (bits - 1)
    return st.integers(-limit, limit - 1)


def _moment(milliseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)


def _decimals(scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**40), 10**40).map(lambda digits: Decimal(f"{digits}E{-scale}"))


_PLAIN: dict[Schema, st.SearchStrategy[Any]] = {
    INT8: _integers(8),
    INT16: _integers(16),
    INT32: _integers(32),
    INT64: _integers(64),
    FLOAT32: st.floats(allow_nan=False, allow_infinity=False, width=32),
    FLOAT64: st.floats(allow_nan=False, allow_infinity=False),
    BOOLEAN: st.booleans(),
    STRING: _TEXT,
    BYTES: st.binary(max_size=8),
    DATE: st.dates(),
    TIME: st.integers(0, 86_399_999).map(lambda since: _moment(since).time()),
    TIMESTAMP: st.integers(-62_135_596_800_000, 253_402_300_799_999).map(_moment),
    decimal(0): _decimals(0),
    decimal(3): _decimals(3),
    decimal(-2): _decimals(-2),
}
_KEYS = (INT32, INT64, STRING, BOOLEAN, DATE)


def schemas() -> st.SearchStrategy[Schema]:
    """Any schema; those of fields and items may be optional."""
    plain = st.sampled_from(list(_PLAIN))
    return st.recursive(plain, lambda inner: _composed(_optional(inner)), max_leaves=8)


def _optional(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.tuples(inner, st.booleans()).map(lambda pair: pair[0].as_optional() if pair[1] else pair[0])


def _composed(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.one_of(
        inner.map(array),
        st.tuples(st.sampled_from(_KEYS), inner).map(lambda pair: mapping(*pair)),
        st.dictionaries(_NAMES, inner, max_size=4).map(lambda fields: struct(fields, name="some.Struct")),
    )


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that fit a schema."""
    present = _present(schema.but(optional=False))
    return st.none() | present if schema.optional else present


def _present(schema: Schema) -> st.SearchStrategy[Any]:
    if schema in _PLAIN:
        return _PLAIN[schema]
    if schema.fields or schema.value_schema is None:
        return st.fixed_dictionaries({field.name: values(field.schema) for field in schema.fields})
    if schema.key_schema is None:
        return st.lists(values(schema.value_schema), max_size=3)
    return st.dictionaries(values(schema.key_schema), values(schema.value_schema), max_size=3)


def typed_values() -> st.SearchStrategy[Typed]:
    """A schema and a value that fits it."""
    return schemas().flatmap(lambda schema: st.tuples(st.just(schema), values(schema)))
