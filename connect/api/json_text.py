"""Values as JSON, in the format of Kafka Connect's JsonConverter, for connectors to systems that use JSON."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any, Final

import msgspec

from connect.api.data import Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import days_of, milliseconds_of, milliseconds_of_time

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_PLAIN: Final = frozenset({str, int, bool, type(None), bytes})


def json_bytes(schema: Schema | None, value: Value) -> bytes:
    """A value as JSON in UTF-8: dates in days, times in milliseconds, decimals as numbers, bytes in base64, and missing
    fields of a struct as null; DataError for values that JSON cannot express."""
    try:
        return _ENCODER.encode(_to_json(schema, value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"a value cannot be written as JSON: {error}") from error


def _to_json(schema: Schema | None, value: Value) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict and schema is not None and schema.type is Type.STRUCT:
        return {field.name: _to_json(field.schema, value.get(field.name)) for field in schema.fields}
    inner = schema.value_schema if schema else None
    if kind is dict:
        return {key: _to_json(inner, item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_to_json(inner, item) for item in value]
    return _scalar_to_json(value)


def _scalar_to_json(value: Value) -> Any:
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise DataError(f"{value} cannot be written as JSON, which has finite numbers only")
        return value
    if isinstance(value, dt.datetime):
        return milliseconds_of(value)
    if isinstance(value, dt.date):
        return days_of(value)
    if isinstance(value, dt.time):
        return milliseconds_of_time(value)
    return value
