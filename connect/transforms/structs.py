"""Structs and maps in transforms: what they must be, and how their schemas are rebuilt."""

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import DataError

Struct = dict[str, Value]
Defaults = tuple[tuple[str, Value], ...]
"""Fields and what they are when they are null."""

_CLASS_NAMES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    str: "java.lang.String",
    bytes: "[B",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    Decimal: "java.math.BigDecimal",
    dt.date: "java.util.Date",
    dt.time: "java.util.Date",
    dt.datetime: "java.util.Date",
}


def class_name(value: Value) -> str:
    """What Kafka Connect calls the class of a value in its messages."""
    return _CLASS_NAMES.get(type(value), type(value).__name__)


def require_map(value: Value, purpose: str) -> Struct:
    """A value without a schema that has fields; DataError for any other."""
    if isinstance(value, dict):
        return value
    told = f"Only Map objects supported in absence of schema for [{purpose}], found: {class_name(value)}"
    raise DataError(told)


def require_struct(value: Value, purpose: str) -> Struct:
    """A value whose schema is a STRUCT; DataError for any other."""
    if isinstance(value, dict):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name(value)}")


def require_struct_schema(schema: Schema, purpose: str) -> None:
    """DataError for a schema that has no fields."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {schema.type.value}")


def rebuilt(schema: Schema, fields: Iterable[Field]) -> Schema:
    """A STRUCT with other fields; the name stays, but whether it is optional, and its default, are not taken over."""
    return schema.but(type=Type.STRUCT, optional=False, default=None, fields=tuple(fields))


def defaults_of(schema: Schema, *, replace_null: bool = True) -> Defaults:
    """The fields of a STRUCT that have a default, which stands for null unless nulls are kept."""
    if not replace_null:
        return ()
    return tuple((item.name, item.schema.default) for item in schema.fields if item.schema.default is not None)


def copied(value: Struct, defaults: Defaults) -> Struct:
    """A copy of a struct in which defaults stand for nulls."""
    copy = value.copy()
    for name, default in defaults:
        if copy.get(name) is None:
            copy[name] = default
    return copy
