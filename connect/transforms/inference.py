"""Infers schemas of values that have none: results of expressions, and JSON in text."""

import datetime as dt
from decimal import Decimal
from functools import lru_cache, reduce
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
_NUMBERS: Final = (OPTIONAL_INT32, OPTIONAL_INT64, OPTIONAL_FLOAT64)
_INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)
_MOST_NESTED: Final = 100


def schema_of(value: Value, *, name: str | None = None, narrow: bool = False, depth: int = 0) -> Schema:
    """An optional schema that fits the value; structs omit fields that are null.

    `narrow`: integers that fit are INT32.
    """
    if depth > _MOST_NESTED:
        raise DataError(f"a value is nested more than {_MOST_NESTED} times")
    if isinstance(value, dict) and depth == 0 and name is None and not narrow:
        shape = tuple([(key, type(item)) for key, item in value.items() if item is not None])
        if all(kind in _SIMPLE for _, kind in shape) and all(type(i) is not int or i in _INT64 for i in value.values()):
            return _flat_schema(shape)
    if isinstance(value, dict):
        fields = (
            Field(str(key), schema_of(item, narrow=narrow, depth=depth + 1))
            for key, item in value.items()
            if item is not None
        )
        return Schema(Type.STRUCT, fields=tuple(fields), name=name, optional=True)
    if isinstance(value, (list, tuple)):
        items = [schema_of(item, narrow=narrow, depth=depth + 1) for item in value if item is not None]
        return array(reduce(_unify, items) if items else OPTIONAL_STRING, optional=True)
    return _simple(value, narrow=narrow)


@lru_cache(maxsize=1_000)
def _flat_schema(shape: tuple[tuple[str, type], ...]) -> Schema:
    """Creating a schema is slow, so those of structs with simple fields are cached."""
    return Schema(Type.STRUCT, fields=tuple(Field(str(name), _SIMPLE[kind]) for name, kind in shape), optional=True)


def _unify(one: Schema, other: Schema) -> Schema:
    """A schema that fits values of both: structs have the fields of both, the wider number type wins."""
    if one == other:
        return one
    if one.type is Type.STRUCT and other.type is Type.STRUCT:
        shared = {name: _unify(schema, other.by_name.get(name, schema)) for name, schema in one.by_name.items()}
        fields = {**shared, **{name: schema for name, schema in other.by_name.items() if name not in shared}}
        return one.but(fields=tuple(Field(*item) for item in fields.items()))
    if one.type is Type.ARRAY and other.type is Type.ARRAY and one.value_schema and other.value_schema:
        return array(_unify(one.value_schema, other.value_schema), optional=True)
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    raise DataError(f"a list with items of the types {one.type.value} and {other.type.value} has no schema")


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
