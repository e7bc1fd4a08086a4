"""Dates, times and decimals as the numbers and bytes that stand for them on the wire.

`schema_registry.serdes.logical` knows how; here a value that does not fit is a DataError.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from connect.api.data import Schema
from connect.api.errors import DataError
from schema_registry.serdes import logical
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical, LogicalName

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

EPOCH = logical.EPOCH
MILLISECONDS_PER_DAY = logical.MILLISECONDS_PER_DAY

_NAMES = frozenset(LogicalName)


def _of_value(change: Callable[[A], T]) -> Callable[[A], T]:
    @wraps(change)
    def changed(value: A) -> T:
        try:
            return change(value)
        except InvalidData as error:
            raise DataError(str(error)) from None

    return changed


def _of_scaled(change: Callable[[A, B], T]) -> Callable[[A, B], T]:
    @wraps(change)
    def changed(value: A, scale: B) -> T:
        try:
            return change(value, scale)
        except InvalidData as error:
            raise DataError(str(error)) from None

    return changed


days_of = _of_value(logical.days_of)
date_of = _of_value(logical.date_of)
milliseconds_of_time = _of_value(logical.milliseconds_of_time)
time_of = _of_value(logical.time_of)
milliseconds_of = _of_value(logical.milliseconds_of)
timestamp_of = _of_value(logical.timestamp_of)
unscaled = _of_scaled(logical.unscaled)
decimal_bytes = _of_scaled(logical.decimal_bytes)
decimal_of = _of_scaled(logical.decimal_of)
rescaled = logical.rescaled


def logical_of(schema: Schema) -> Logical | None:
    """The logical type of a schema; raises DataError for a Decimal without a scale."""
    if schema.name not in _NAMES:
        return None
    name = LogicalName(schema.name)
    return Logical(name, scale=scale_of(schema) if name is LogicalName.DECIMAL else 0)


@lru_cache(maxsize=1000)
def scale_of(schema: Schema) -> int:
    """The digits after the point that the schema of a Decimal tells."""
    text = schema.parameters.get("scale")
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        scale = int(text)
    except ValueError:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {text}") from None
    if abs(scale) > logical.SCALE_MAX:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {scale} is beyond {logical.SCALE_MAX}")
    return scale
