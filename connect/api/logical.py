"""Dates, times and decimals as the numbers and bytes that stand for them on the wire.

`schema_registry.serdes.logical` knows how; here a value that does not fit is a DataError.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from connect.api.data import Schema
from connect.api.errors import DataError
from schema_registry.serdes import logical
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical, LogicalName

P = ParamSpec("P")
T = TypeVar("T")

EPOCH = logical.EPOCH
MILLISECONDS_PER_DAY = logical.MILLISECONDS_PER_DAY

_NAMES = frozenset(LogicalName)


def _for_connect(change: Callable[P, T]) -> Callable[P, T]:
    @wraps(change)
    def changed(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return change(*arguments, **named)
        except InvalidData as error:
            raise DataError(str(error)) from None

    return changed


days_of = _for_connect(logical.days_of)
date_of = _for_connect(logical.date_of)
milliseconds_of_time = _for_connect(logical.milliseconds_of_time)
time_of = _for_connect(logical.time_of)
milliseconds_of = _for_connect(logical.milliseconds_of)
timestamp_of = _for_connect(logical.timestamp_of)
unscaled = _for_connect(logical.unscaled)
decimal_bytes = _for_connect(logical.decimal_bytes)
decimal_of = _for_connect(logical.decimal_of)
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
