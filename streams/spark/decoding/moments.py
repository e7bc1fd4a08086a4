"""Dates, times and timestamps: from the numbers that formats store to what Spark's tables hold.

There is no type for a time of day: it is text, as Python's `isoformat` writes it.
"""

from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.serdes.errors import InvalidData
from streams.spark.types import TIMESTAMP

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MS_PER_DAY: Final = 86_400_000
_FIRST_MS, _LAST_MS = _FIRST_DAY * _MS_PER_DAY, (_LAST_DAY + 1) * _MS_PER_DAY - 1


class Doubt(Exception):
    """Some value of many cannot be what it is said to be; which one is found by looking at each."""


def within(array: pa.Array, least: int, most: int) -> pa.Array:
    """The same array of numbers, all of which must be in a range; raises Doubt."""
    found = pc.min_max(array)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < least or high > most):
        raise Doubt
    return array


def dates(days: pa.Array) -> pa.Array:
    """Days since 1970, as 64 bits, as dates."""
    return within(days, _FIRST_DAY, _LAST_DAY).cast(pa.int32()).view(pa.date32())


def timestamps(milliseconds: pa.Array) -> pa.Array:
    """Milliseconds since 1970 as timestamps."""
    return pc.multiply(within(milliseconds, _FIRST_MS, _LAST_MS), 1000).view(TIMESTAMP)


def times(milliseconds: pa.Array) -> pa.Array:
    """Milliseconds since midnight as text."""
    seconds, fractions = _tables()
    whole = pc.divide(within(milliseconds, 0, _MS_PER_DAY - 1), 1000)
    rest = pc.subtract(milliseconds, pc.multiply(whole, 1000))
    return pc.binary_join_element_wise(seconds.take(whole), fractions.take(rest), "")


def date_value(days: int) -> int:
    """Days since 1970 of a date, checked; raises InvalidData."""
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise InvalidData(f"{days} days since 1970 is not a date of the years 1 to 9999")
    return days


def timestamp_value(milliseconds: int) -> int:
    """Microseconds since 1970 of a timestamp, checked; raises InvalidData."""
    if not _FIRST_MS <= milliseconds <= _LAST_MS:
        raise InvalidData(f"{milliseconds} milliseconds since 1970 is not a moment of the years 1 to 9999")
    return milliseconds * 1000


def time_value(milliseconds: int) -> str:
    """The text of a time of day; raises InvalidData."""
    if not 0 <= milliseconds < _MS_PER_DAY:
        allowed = f"from 0 and less than {_MS_PER_DAY}"
        raise InvalidData(f"Time values must use a number of milliseconds {allowed}, not {milliseconds}")
    seconds, rest = divmod(milliseconds, 1000)
    return _second(seconds) + _fraction(rest)


def _second(number: int) -> str:
    return f"{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"


def _fraction(milliseconds: int) -> str:
    return f".{milliseconds:03}000" if milliseconds else ""


@cache
def _tables() -> tuple[Any, Any]:
    """The texts of all seconds of a day, and of all milliseconds of a second."""
    return pa.array([_second(n) for n in range(86_400)]), pa.array([_fraction(n) for n in range(1000)])
