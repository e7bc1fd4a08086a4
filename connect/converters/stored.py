"""Logical types of Connect, and the numbers and bytes that formats store for them."""

from collections.abc import Callable
from typing import Final

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Value
from connect.api.logical import (
    date_of,
    days_of,
    decimal_bytes,
    decimal_of,
    milliseconds_of,
    milliseconds_of_time,
    scale_of,
    time_of,
    timestamp_of,
)

Change = Callable[[Value], Value]

_TO_STORED: Final[dict[str, Change]] = {
    DATE_NAME: days_of,
    TIME_NAME: milliseconds_of_time,
    TIMESTAMP_NAME: milliseconds_of,
}
_FROM_STORED: Final[dict[str, Change]] = {DATE_NAME: date_of, TIME_NAME: time_of, TIMESTAMP_NAME: timestamp_of}


def to_stored(schema: Schema) -> Change | None:
    """What turns values of a logical type into what is stored for them; None for other types. Raises DataError."""
    if schema.name == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: decimal_bytes(value, scale)
    return _TO_STORED.get(schema.name or "")


def from_stored(schema: Schema) -> Change | None:
    """What turns what is stored for a logical type, of the right type already, into its values; None for others."""
    if schema.name == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda data: decimal_of(data, scale)
    return _FROM_STORED.get(schema.name or "")
