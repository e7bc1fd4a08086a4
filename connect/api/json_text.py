"""Values as JSON, in the shapes of Kafka Connect's JsonConverter, for connectors whose other side speaks JSON."""

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
    """A value as JSON in UTF-8: dates in days, times in milliseconds, decimals as numbers, bytes in base64, and fields
    that a struct lacks as null; DataError for what JSON does not have."""
    try:
        return _ENCODER.encode(_ready(schema, value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"a value cannot be written as JSON: {error}") from error


def _ready(schema: Schema | None, value: Value) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return _ready_dict(schema, value)
    if kind is list or kind is tuple:
        inner = schema.value_schema if schema else None
        return [_ready(inner, item) for item in value]
    return _ready_scalar(value)


def _ready_dict(schema: Schema | None, value: dict[Value, Value]) -> dict[Value, Any]:
    if schema is not None and schema.type is Type.STRUCT:
        return {field.name: _ready(field.schema, value.get(field.name)) for field in schema.fields}
    inner = schema.value_schema if schema else None
    return {key: _ready(inner, item) for key, item in value.items()}


def _ready_scalar(value: Value) -> Any:
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
