"""Schemas of values that came without one: results of expressions, and JSON in text."""

import datetime as dt
from decimal import Decimal
from typing import Final

from connect.api.data import (
    DATE,
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    Value,
    array,
    decimal,
)
from connect.api.errors import DataError

_SIMPLE: Final[dict[type, Schema]] = {
    bool: OPTIONAL_BOOLEAN,
    int: OPTIONAL_INT64,
    float: OPTIONAL_FLOAT64,
    str: OPTIONAL_STRING,
    bytes: OPTIONAL_BYTES,
    dt.datetime: TIMESTAMP.as_optional(),
    dt.date: DATE.as_optional(),
    dt.time: TIME.as_optional(),
}
_INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)
_MOST_NESTED: Final = 100


def schema_of(value: Value, *, name: str | None = None, narrow: bool = False, depth: int = 0) -> Schema:
    """An optional schema that the value fits; fields that are null are left out of structs.

    `narrow` makes INT32 of integers that fit.
    """
    if depth > _MOST_NESTED:
        raise DataError(f"a value is nested more than {_MOST_NESTED} times")
    if isinstance(value, dict):
        fields = (
            Field(str(key), schema_of(item, narrow=narrow, depth=depth + 1))
            for key, item in value.items()
            if item is not None
        )
        return Schema(Type.STRUCT, fields=tuple(fields), name=name, optional=True)
    if isinstance(value, (list, tuple)):
        first = next((item for item in value if item is not None), None)
        return array(_items(value, schema_of(first, narrow=narrow, depth=depth + 1)), optional=True)
    return _simple(value, narrow=narrow)


def _items(values: list[Value] | tuple[Value, ...], first: Schema) -> Schema:
    """What all items fit: integers and fractions together are fractions, long and short integers long ones."""
    kinds = {type(item) for item in values if item is not None}
    if kinds == {int, float}:
        return OPTIONAL_FLOAT64
    if first == OPTIONAL_INT32 and any(item not in _INT32 for item in values if item is not None):
        return OPTIONAL_INT64
    if len(kinds) > 1:
        raise DataError("a list whose items have different types has no schema")
    return first


def _simple(value: Value, *, narrow: bool) -> Schema:
    if value is None:
        return OPTIONAL_STRING
    if isinstance(value, Decimal):
        return decimal(max(0, -int(value.as_tuple().exponent)), optional=True)
    if type(value) is int and value not in _INT64:
        raise DataError(f"the number {str(value)[:100]} has more than 64 bits")
    if type(value) is int and narrow and value in _INT32:
        return OPTIONAL_INT32
    if type(value) not in _SIMPLE:
        raise DataError(f"a value of type {type(value).__name__} has no schema")
    return _SIMPLE[type(value)]
