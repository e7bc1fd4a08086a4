"""Values of Spark's rows as JSON."""

import datetime as dt
import decimal
import math
from collections.abc import Mapping, Sequence
from typing import Final

from streams.spark.engine.messages import JSON

_DEPTH_MAX: Final = 100


def json_value(value: object, *, depth: int = 0) -> JSON:
    """A value without Spark's classes: times are ISO 8601, decimals are text, bytes are hexadecimal."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if depth > _DEPTH_MAX:
        return "…"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, dt.datetime):
        # Spark returns times of the session's zone, which is UTC, without the zone.
        return value.isoformat() if value.tzinfo is not None else f"{value.isoformat()}Z"
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return _nested(value, depth + 1)


def _nested(value: object, depth: int) -> JSON:
    if isinstance(value, tuple) and hasattr(value, "__fields__"):
        # If a struct has two fields of one name, the later one wins, as usual in JSON.
        return {name: json_value(item, depth=depth) for name, item in zip(value.__fields__, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(json_value(key)): json_value(item, depth=depth) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [json_value(item, depth=depth) for item in value]
    return str(value)
