"""Times in text by a pattern of Java's DateTimeFormatter, as `timestamp_format` gives it; without a zone, in UTC."""

import datetime as dt
import re
from typing import Final
from zoneinfo import ZoneInfo

from streams.errors import WrongOption

_UTC: Final = dt.UTC
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=_UTC)
_MS: Final = dt.timedelta(milliseconds=1)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS: Final = {"y": "year", "u": "year", "M": "month", "L": "month", "d": "day", "H": "hour", "k": "hour24"} | {
    "h": "hour12",
    "K": "hour12",
    "m": "minute",
    "s": "second",
    "D": "day_of_year",
}
_PARTS: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)
_OFFSET: Final = re.compile(r"([+-])(\d{2}):?(\d{2})?(?::?(\d{2}))?")


class TimestampPattern:
    """Reads texts of one pattern."""

    def __init__(self, pattern: str) -> None:
        self._groups: list[str] = []
        self._optional = 0
        try:
            self._match = re.compile(self._expression(pattern), re.IGNORECASE).fullmatch
        except re.error as error:
            raise _refused(pattern, str(error)) from error

    def milliseconds(self, text: str | None) -> int | None:
        """The time since 1970; None if the text does not have the pattern."""
        found = None if text is None else self._match(text)
        if found is None:
            return None
        try:
            return (self._moment(found.groupdict()) - _EPOCH) // _MS
        except (ValueError, OverflowError, LookupError, OSError):
            return None

    def _expression(self, pattern: str) -> str:
        parts = []
        for quoted, run, letter, other in _PARTS.findall(pattern):
            if run:
                parts.append(self._letters(pattern, letter, len(run)))
            elif other in ("[", "]"):
                parts.append("(?:" if other == "[" else ")?")
            elif other == "'":
                raise _refused(pattern, "a quote is not closed")
            else:
                parts.append(re.escape(other or quoted.replace("''", "'") or "'"))
        return "".join(parts)

    def _letters(self, pattern: str, letter: str, count: int) -> str:
        if letter == "M" and count >= 3:
            return self._group("month_name", r"[A-Za-z]+")
        if letter in _NUMBERS:
            digits = rf"\d{{{count}}}" if count > 1 else r"\d+"
            if letter in "yu":
                digits = r"\d{2}" if count == 2 else rf"\d{{{max(count, 1)},9}}"
            return self._group("short_year" if letter in "yu" and count == 2 else _NUMBERS[letter], digits)
        match letter:
            case "S":
                return self._group("fraction", rf"\d{{{count}}}")
            case "a":
                return self._group("half", r"am|pm")
            case "E":
                return r"[A-Za-z]+"
            case "X" | "x" | "Z" | "z" | "O":
                return self._group("zone", r"Z|UTC|GMT|[+-]\d{2}(?::?\d{2}){0,2}|[A-Za-z_]+/[A-Za-z_/+-]+\d*")
            case "V":
                return self._group("zone", r"[A-Za-z_/+-]+\d*")
            case "G":
                return r"(?:AD|CE)"
            case _:
                raise _refused(pattern, f"letter {letter} is not supported")

    def _group(self, name: str, expression: str) -> str:
        if name in self._groups:
            return f"(?:{expression})"
        self._groups.append(name)
        return f"(?P<{name}>{expression})"

    def _moment(self, found: dict[str, str | None]) -> dt.datetime:
        year = int(found.get("year") or 2000 + int(found.get("short_year") or -30))
        if day_of_year := found.get("day_of_year"):
            day = dt.date(year, 1, 1) + dt.timedelta(days=int(day_of_year) - 1)
        else:
            day = dt.date(year, _month(found), int(found.get("day") or 1))
        fraction = (found.get("fraction") or "0").ljust(6, "0")[:6]
        minute, second = int(found.get("minute") or 0), int(found.get("second") or 0)
        moment = dt.datetime.combine(day, dt.time(_hour(found), minute, second, int(fraction), tzinfo=_UTC))
        return _in_zone(moment, found.get("zone"))


def _month(found: dict[str, str | None]) -> int:
    name = found.get("month_name")
    return int(found.get("month") or 1) if name is None else _MONTHS.index(name[:3].lower()) + 1


def _hour(found: dict[str, str | None]) -> int:
    if (short := found.get("hour12")) is not None:
        return int(short) % 12 + (12 if (found.get("half") or "").lower() == "pm" else 0)
    return int(found.get("hour") or found.get("hour24") or 0) % 24


def _in_zone(moment: dt.datetime, zone: str | None) -> dt.datetime:
    if zone is None or zone.upper() in ("Z", "UTC", "GMT"):
        return moment
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return moment.replace(tzinfo=ZoneInfo(zone))
    sign, hours, minutes, seconds = offset.groups()
    shift = dt.timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    return moment - shift if sign == "+" else moment + shift


def _refused(pattern: str, reason: str) -> WrongOption:
    return WrongOption("timestamp_format", pattern, reason)
