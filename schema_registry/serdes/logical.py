"""Logical types: their names, and their Python values as the numbers and bytes that are stored for them.

These are Kafka Connect's, whose names all three formats use if they have none of their own: a date in days, a time of
day and a timestamp in milliseconds, a decimal as the two's complement of its digits. Types that Connect does not have
(`timestamp-micros`, `uuid` and so on) are the plain types that are stored for them.
"""

import datetime as dt
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from schema_registry.serdes.errors import InvalidData

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLISECONDS_PER_DAY: Final = 86_400_000
SCALE_MAX: Final = 100_000
DIGITS_MAX: Final = 10_000
"""The most digits that a decimal in JSON may have before or after its point."""

_EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_BYTES_MAX: Final = 4096


class LogicalName(StrEnum):
    """A logical type of Kafka Connect."""

    DATE = "org.apache.kafka.connect.data.Date"
    TIME = "org.apache.kafka.connect.data.Time"
    TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
    DECIMAL = "org.apache.kafka.connect.data.Decimal"


class Logical(NamedTuple):
    """A logical type, with the digits of a decimal."""

    name: LogicalName
    precision: int | None = None
    scale: int = 0


def days_of(value: Any) -> int:
    """Days since 1970 of a date."""
    if type(value) is not dt.date:
        if isinstance(value, dt.datetime):
            raise InvalidData("Kafka Connect Date type should not have any time fields set to non-zero values.")
        raise InvalidData(f"Invalid type for Date, expected Date but was {type(value).__name__}")
    return value.toordinal() - _EPOCH_ORDINAL


def date_of(days: int) -> dt.date:
    """The date of a number of days since 1970."""
    try:
        return dt.date.fromordinal(days + _EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        raise InvalidData(f"{days} days since 1970 is not a date of the years 1 to 9999") from None


def milliseconds_of_time(value: Any) -> int:
    """Milliseconds since midnight of a time of day."""
    if not isinstance(value, dt.time):
        raise InvalidData(f"Invalid type for Time, expected Time but was {type(value).__name__}")
    return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000


def time_of(milliseconds: int) -> dt.time:
    """The time of day of a number of milliseconds since midnight."""
    if not 0 <= milliseconds < MILLISECONDS_PER_DAY:
        allowed = f"from 0 and less than {MILLISECONDS_PER_DAY}"
        raise InvalidData(f"Time values must use a number of milliseconds {allowed}, not {milliseconds}")
    seconds, rest = divmod(milliseconds, 1000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1000)


def milliseconds_of(value: Any) -> int:
    """Milliseconds since 1970 of a timestamp."""
    try:
        since: dt.timedelta = value - EPOCH
    except TypeError:
        found = "one without a time zone" if isinstance(value, dt.datetime) else type(value).__name__
        raise InvalidData(f"Invalid type for Timestamp, expected a datetime in UTC but was {found}") from None
    return since.days * MILLISECONDS_PER_DAY + since.seconds * 1000 + since.microseconds // 1000


def timestamp_of(milliseconds: int) -> dt.datetime:
    """The timestamp of a number of milliseconds since 1970."""
    try:
        return EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise InvalidData(f"{milliseconds} milliseconds since 1970 is not a moment of the years 1 to 9999") from None


def unscaled(value: Any, scale: int) -> int:
    """The digits of a decimal, which must have this scale, as a whole number."""
    if not isinstance(value, Decimal) or not value.is_finite():
        raise InvalidData(f"Invalid type for Decimal, expected a finite Decimal but was {type(value).__name__}")
    if not value.same_quantum(_quantum(scale)):
        has = -int(value.as_tuple().exponent)
        detail = f"Schema has scale {scale}, value has scale {has}."
        raise InvalidData(f"Decimal value has mismatching scale for given Decimal schema. {detail}")
    return int(_EXACT.scaleb(value, scale))


def rescaled(value: Decimal, scale: int) -> Decimal:
    """The same number at this scale; unchanged if it would not be the same."""
    quantum = _quantum(scale)
    if value.same_quantum(quantum):
        return value
    changed = value.quantize(quantum, context=_EXACT)
    return changed if changed == value else value


def decimal_bytes(value: Any, scale: int) -> bytes:
    """A decimal as the shortest two's complement of its digits, big end first."""
    number = unscaled(value, scale)
    magnitude = number if number >= 0 else -number - 1
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def decimal_of(data: bytes, scale: int) -> Decimal:
    """The decimal of such bytes."""
    if len(data) > _BYTES_MAX:
        raise InvalidData(f"A Decimal of {len(data)} bytes has more digits than {_BYTES_MAX} bytes hold")
    return _EXACT.scaleb(Decimal(int.from_bytes(data, "big", signed=True)), -scale)


def to_stored(logical: Logical) -> Callable[[Any], Any]:
    """Turns values of a logical type into what is stored for them; raises InvalidData."""
    if logical.name is LogicalName.DECIMAL:
        return lambda value: decimal_bytes(value, logical.scale)
    return _TO_STORED[logical.name]


def from_stored(logical: Logical) -> Callable[[Any], Any]:
    """Turns what is stored for a logical type into values; raises InvalidData."""
    if logical.name is LogicalName.DECIMAL:
        return lambda data: decimal_of(data, logical.scale)
    return _FROM_STORED[logical.name]


_TO_STORED: Final[dict[LogicalName, Callable[[Any], int]]] = {
    LogicalName.DATE: days_of,
    LogicalName.TIME: milliseconds_of_time,
    LogicalName.TIMESTAMP: milliseconds_of,
}
_FROM_STORED: Final[dict[LogicalName, Callable[[int], Any]]] = {
    LogicalName.DATE: date_of,
    LogicalName.TIME: time_of,
    LogicalName.TIMESTAMP: timestamp_of,
}


@lru_cache(maxsize=1000)
def _quantum(scale: int) -> Decimal:
    return Decimal((0, (1,), -scale))
