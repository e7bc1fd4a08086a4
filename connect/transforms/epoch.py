"""Converts dates and times to numbers since 1970, and back."""

import datetime as dt
from typing import Final

from connect.api.errors import DataError

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY_MS: Final = 86_400_000
_FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH_OF_UTC: Final = EPOCH.replace(tzinfo=None)


def ms_of(value: dt.date | dt.time) -> int:
    """Milliseconds of a Timestamp, of the midnight that begins a Date, or of a Time since midnight."""
    if isinstance(value, dt.datetime):
        since = value - EPOCH
        return since.days * DAY_MS + since.seconds * 1000 + since.microseconds // 1000
    if isinstance(value, dt.date):
        return days_of(value) * DAY_MS
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def days_of(value: dt.date) -> int:
    """Days of a Date."""
    return value.toordinal() - _FIRST_DAY


def timestamp_at(ms: int) -> dt.datetime:
    """The Timestamp at a number of milliseconds."""
    try:
        return EPOCH + dt.timedelta(0, 0, ms * 1000)
    except OverflowError:
        raise _outside(ms) from None


def clock_at(ms: int) -> dt.datetime:
    """The time in UTC without a zone, which is faster to format."""
    try:
        return _EPOCH_OF_UTC + dt.timedelta(0, 0, ms * 1000)
    except OverflowError:
        raise _outside(ms) from None


def date_at(ms: int) -> dt.date:
    """The date in UTC at a number of milliseconds."""
    return clock_at(ms).date()


def time_at(ms: int) -> dt.time:
    """The time of day in UTC at a number of milliseconds."""
    return clock_at(ms % DAY_MS).time()


def _outside(ms: int) -> DataError:
    return DataError(f"a time of {ms} ms since 1970 is outside the years 1 to 9999")
