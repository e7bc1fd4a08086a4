"""Schemas for records that have none: what the columns of a new table should be, seen from the values."""

from datetime import date, datetime, time
from decimal import Decimal
from typing import Final

from connect.api import data
from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError

_LONG_MAX: Final = 2**63 - 1
_ANYTHING: Final = data.mapping(data.STRING, data.OPTIONAL_STRING, optional=True)
_NUMBERS: Final = (Type.INT64, Type.FLOAT64)


def schema_of(value: Value) -> Schema | None:
    """The optional schema that a value would have had; None for null, which fits all."""
    match value:
        case None:
            return None
        case bool():
            return data.OPTIONAL_BOOLEAN
        case int():
            return data.OPTIONAL_INT64 if -_LONG_MAX <= value <= _LONG_MAX else data.decimal(0, optional=True)
        case float():
            return data.OPTIONAL_FLOAT64
        case str():
            return data.OPTIONAL_STRING
        case bytes():
            return data.OPTIONAL_BYTES
        case dict() | list() | tuple():
            return _ANYTHING
        case _:
            return _logical(value)


def _logical(value: Value) -> Schema:
    match value:
        case Decimal():
            return data.decimal(max(0, -int(value.as_tuple().exponent)), optional=True)
        case datetime():
            return data.TIMESTAMP.as_optional()
        case date():
            return data.DATE.as_optional()
        case time():
            return data.TIME.as_optional()
        case _:
            raise DataError(f"a value of type {type(value).__name__} has no place in a table")


def both(one: Schema | None, other: Schema | None) -> Schema | None:
    """A schema for values of either; text where nothing else holds both."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if one.name is None and other.name is None and one.type in _NUMBERS and other.type in _NUMBERS:
        return data.OPTIONAL_FLOAT64
    if one.name == other.name == data.DECIMAL_NAME:
        return max(one, other, key=lambda schema: int(schema.parameters["scale"]))
    return data.OPTIONAL_STRING
