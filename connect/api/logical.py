"""Dates, times and decimals, and the numbers and bytes that are stored for them.

The same as `schema_registry.serdes.logical`, except that a value that does not fit is a DataError.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

from connect.api.data import DATE, TIME, TIMESTAMP, Schema, decimal
from connect.api.errors import DataError
from schema_registry.serdes import logical
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical, LogicalName

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

EPOCH = logical.EPOCH
MILLISECONDS_PER_DAY = logical.MILLISECONDS_PER_DAY

PRECISION: Final = "connect.decimal.precision"
"""The parameter of a Decimal with the number of its digits."""

_NAMES: Final = frozenset(LogicalName)
_SCHEMAS: Final = {LogicalName.DATE: DATE, LogicalName.TIME: TIME, LogicalName.TIMESTAMP: TIMESTAMP}


# Two wrappers, because these functions run for every value: `*arguments` would take half as long again.


def _with_data_errors(convert: Callable[[A], T]) -> Callable[[A], T]:
    @wraps(convert)
    def convert_value(value: A) -> T:
        try:
            return convert(value)
        except InvalidData as error:
            raise DataError(str(error)) from None

    return convert_value


def _scaled_with_data_errors(convert: Callable[[A, B], T]) -> Callable[[A, B], T]:
    @wraps(convert)
    def convert_value(value: A, scale: B) -> T:
        try:
            return convert(value, scale)
        except InvalidData as error:
            raise DataError(str(error)) from None

    return convert_value


days_of = _with_data_errors(logical.days_of)
date_of = _with_data_errors(logical.date_of)
milliseconds_of_time = _with_data_errors(logical.milliseconds_of_time)
time_of = _with_data_errors(logical.time_of)
milliseconds_of = _with_data_errors(logical.milliseconds_of)
timestamp_of = _with_data_errors(logical.timestamp_of)
unscaled = _scaled_with_data_errors(logical.unscaled)
decimal_bytes = _scaled_with_data_errors(logical.decimal_bytes)
decimal_of = _scaled_with_data_errors(logical.decimal_of)
rescaled = logical.rescaled


def logical_of(schema: Schema) -> Logical | None:
    """The logical type of a schema; raises DataError for a Decimal without a scale."""
    if schema.name not in _NAMES:
        return None
    name = LogicalName(schema.name)
    return Logical(name, scale=scale_of(schema) if name is LogicalName.DECIMAL else 0)


def logical_schema(logical: Logical) -> Schema:
    """The schema of a logical type."""
    if logical.name is not LogicalName.DECIMAL:
        return _SCHEMAS[logical.name]
    made = decimal(logical.scale)
    if logical.precision is None:
        return made
    return made.but(parameters={**made.parameters, PRECISION: str(logical.precision)})


@lru_cache(maxsize=1000)
def scale_of(schema: Schema) -> int:
    """The digits after the point in the schema of a Decimal."""
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
