"""Structs and maps in transforms: how they are checked, and how their schemas are rebuilt."""

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from connect.api.data import Field, Schema, Type, Value
from connect.api.errors import DataError

Struct = dict[str, Value]
Defaults = tuple[tuple[str, Value], ...]
"""Fields, and the defaults that replace null in them."""

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
    """The name that Kafka Connect's messages have for the class of a value."""
    return _CLASS_NAMES.get(type(value), type(value).__name__)


def require_map(value: Value, purpose: str) -> Struct:
    """A value without a schema that has fields; DataError for any other."""
    if isinstance(value, dict):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {class_name(value)}")


def require_struct(value: Value, purpose: str) -> Struct:
    """A value whose schema is a STRUCT; DataError for any other."""
    if isinstance(value, dict):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name(value)}")


def require_struct_schema(schema: Schema, purpose: str) -> None:
    """DataError for a schema that has no fields."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {schema.type.value}")


def with_fields(schema: Schema, fields: Iterable[Field]) -> Schema:
    """A STRUCT with other fields: it keeps the name, but is neither optional nor has a default."""
    return schema.but(type=Type.STRUCT, optional=False, default=None, fields=tuple(fields))


def defaults_of(schema: Schema, *, replace_null: bool = True) -> Defaults:
    """The fields of a STRUCT that have a default; none when nulls are kept."""
    if not replace_null:
        return ()
    return tuple((item.name, item.schema.default) for item in schema.fields if item.schema.default is not None)


def copy_with_defaults(value: Struct, defaults: Defaults) -> Struct:
    """A copy of a struct in which defaults replace nulls."""
    copy = value.copy()
    for name, default in defaults:
        if copy.get(name) is None:
            copy[name] = default
    return copy
