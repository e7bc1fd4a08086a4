"""Dates, times and decimals as the numbers and bytes that stand for them on the wire."""

import datetime as dt
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache
from typing import Final

from connect.api.data import Schema, Value
from connect.api.errors import DataError

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLISECONDS_PER_DAY: Final = 86_400_000

_EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MOST_SCALE: Final = 100_000
_MOST_BYTES: Final = 4096


def days_of(value: Value) -> int:
    """Days since 1970 of a Date."""
    if type(value) is not dt.date:
        if isinstance(value, dt.datetime):
            raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
        raise DataError(f"Invalid type for Date, expected Date but was {type(value).__name__}")
    return value.toordinal() - _EPOCH_ORDINAL


def date_of(days: int) -> dt.date:
    """The Date that is so many days after 1970."""
    try:
        return dt.date.fromordinal(days + _EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        raise DataError(f"{days} days since 1970 is not a date of the years 1 to 9999") from None


def milliseconds_of_time(value: Value) -> int:
    """Milliseconds since midnight of a Time."""
    if not isinstance(value, dt.time):
        raise DataError(f"Invalid type for Time, expected Time but was {type(value).__name__}")
    return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000


def time_of(milliseconds: int) -> dt.time:
    """The Time that is so long after midnight."""
    if not 0 <= milliseconds < MILLISECONDS_PER_DAY:
        allowed = f"from 0 and less than {MILLISECONDS_PER_DAY}"
        raise DataError(f"Time values must use a number of milliseconds {allowed}, not {milliseconds}")
    seconds, rest = divmod(milliseconds, 1000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1000)


def milliseconds_of(value: Value) -> int:
    """Milliseconds since 1970 of a Timestamp."""
    try:
        since: dt.timedelta = value - EPOCH
    except TypeError:
        told = "one without a time zone" if isinstance(value, dt.datetime) else type(value).__name__
        raise DataError(f"Invalid type for Timestamp, expected a datetime in UTC but was {told}") from None
    return since.days * MILLISECONDS_PER_DAY + since.seconds * 1000 + since.microseconds // 1000


def timestamp_of(milliseconds: int) -> dt.datetime:
    """The Timestamp that is so long after 1970."""
    try:
        return EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        told = f"{milliseconds} milliseconds since 1970 is not a moment of the years 1 to 9999"
        raise DataError(told) from None


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
    if abs(scale) > _MOST_SCALE:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {scale} is beyond {_MOST_SCALE}")
    return scale


def unscaled(value: Value, scale: int) -> int:
    """The whole number that a Decimal is without its point; its scale must be this one."""
    if not isinstance(value, Decimal) or not value.is_finite():
        raise DataError(f"Invalid type for Decimal, expected a finite Decimal but was {type(value).__name__}")
    if not value.same_quantum(_quantum(scale)):
        has = -int(value.as_tuple().exponent)
        told = f"Schema has scale {scale}, value has scale {has}."
        raise DataError(f"Decimal value has mismatching scale for given Decimal schema. {told}")
    return int(_EXACT.scaleb(value, scale))


def rescaled(value: Decimal, scale: int) -> Decimal:
    """The same number with this many digits after the point; as it is when it would not be the same."""
    quantum = _quantum(scale)
    if value.same_quantum(quantum):
        return value
    changed = value.quantize(quantum, context=_EXACT)
    return changed if changed == value else value


def decimal_bytes(value: Value, scale: int) -> bytes:
    """A Decimal as the shortest two's complement of its digits, big end first."""
    number = unscaled(value, scale)
    magnitude = number if number >= 0 else -number - 1
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def decimal_of(data: bytes, scale: int) -> Decimal:
    """The Decimal that such bytes stand for."""
    if len(data) > _MOST_BYTES:
        raise DataError(f"A Decimal of {len(data)} bytes has more digits than {_MOST_BYTES} bytes hold")
    return _EXACT.scaleb(Decimal(int.from_bytes(data, "big", signed=True)), -scale)


@lru_cache(maxsize=1000)
def _quantum(scale: int) -> Decimal:
    return Decimal((0, (1,), -scale))
