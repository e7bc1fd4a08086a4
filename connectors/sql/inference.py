"""Schemas of values that have none, for the columns of new tables."""

from datetime import date, datetime, time
from decimal import Decimal
from typing import Final

from connect.api import data
from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError

_LONG_MAX: Final = 2**63 - 1
_ANYTHING: Final = data.mapping(data.STRING, data.OPTIONAL_STRING, optional=True)
# In this order: a boolean is an int, and a datetime a date.
_SCHEMAS: Final[tuple[tuple[type | tuple[type, ...], Schema], ...]] = (
    (bool, data.OPTIONAL_BOOLEAN),
    (float, data.OPTIONAL_FLOAT64),
    (str, data.OPTIONAL_STRING),
    (bytes, data.OPTIONAL_BYTES),
    ((dict, list, tuple), _ANYTHING),
    (datetime, data.TIMESTAMP.as_optional()),
    (date, data.DATE.as_optional()),
    (time, data.TIME.as_optional()),
)
_NUMBERS: Final = (Type.INT64, Type.FLOAT64)


def schema_of(value: Value) -> Schema | None:
    """The optional schema of a value; None for null, which any schema takes."""
    if value is None:
        return None
    for class_, schema in _SCHEMAS:
        if isinstance(value, class_):
            return schema
    if isinstance(value, int):
        return data.OPTIONAL_INT64 if -_LONG_MAX <= value <= _LONG_MAX else data.decimal(0, optional=True)
    if isinstance(value, Decimal):
        return data.decimal(max(0, -int(value.as_tuple().exponent)), optional=True)
    raise DataError(f"a value of type {type(value).__name__} cannot be stored in a table")


def common_schema(one: Schema | None, other: Schema | None) -> Schema | None:
    """A schema that holds the values of both; text where there is no other."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if one.name is None and other.name is None and one.type in _NUMBERS and other.type in _NUMBERS:
        return data.OPTIONAL_FLOAT64
    if one.name == other.name == data.DECIMAL_NAME:
        return max(one, other, key=lambda schema: int(schema.parameters["scale"]))
    return data.OPTIONAL_STRING
