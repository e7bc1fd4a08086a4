"""Dates as text by the patterns of Java's SimpleDateFormat, in UTC and English."""

import datetime as dt
import re
from collections.abc import Callable
from operator import attrgetter
from typing import Final, NamedTuple, Self

from connect.transforms.epoch import EPOCH, ms_of
from connect.transforms.java.date_parse import DateParser
from connect.transforms.java.date_pattern import MONTHS, WEEKDAYS, Part, parse_pattern

_ISO_PATTERN: Final = re.compile(
    r"yyyy-MM-dd(?:(?P<separator> |'T')HH:mm:ss(?P<fraction>\.SSS)?(?P<zone>'Z'|X{1,3})?)?", re.ASCII
)
_ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UTC: Final = "+00:00"

Getter = Callable[[dt.datetime], int | str]


class DateFormat:
    """Writes and reads dates of one pattern; ValueError when the pattern is invalid."""

    def __init__(self, pattern: str, *, now_ms: int) -> None:
        """`now_ms` decides the century of a two-digit year: from 80 years back to 20 ahead."""
        self.pattern = pattern
        parts = parse_pattern(pattern)
        this_year = (EPOCH + dt.timedelta(milliseconds=now_ms)).year
        self._template = "".join(_template(part) for part in parts)
        self._getters = tuple(_getter(part) for part in parts if part.letter)
        self._parser = DateParser(parts, this_year=this_year)
        self._iso = _IsoShape.of(pattern)

    def format(self, moment: dt.datetime) -> str:
        """The text of a time in UTC, naive or aware."""
        if self._iso is not None:
            return self._iso.format(moment)
        return self._template % tuple([get(moment) for get in self._getters])

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970; None when the text does not fit the pattern."""
        exact = self._iso.parse(text) if self._iso is not None else None
        return self._parser.parse(text) if exact is None else exact


class _IsoShape(NamedTuple):
    """A fast path for the most common patterns: `yyyy-MM-dd HH:mm:ss`, with T, milliseconds, Z, or only the date.

    Text that does not match exactly is left to the lenient parser.
    """

    separator: str
    timespec: str
    suffix: str
    shape: re.Pattern[str]

    @classmethod
    def of(cls, pattern: str) -> Self | None:
        """The shape of a pattern; None if it is not one of these."""
        found = _ISO_PATTERN.fullmatch(pattern)
        if found is None:
            return None
        if found["separator"] is None:
            return cls("", "", "", _ISO_DATE)
        separator = found["separator"].strip("'")
        fraction = r"\.\d{3}" if found["fraction"] else ""
        suffix = "Z" if found["zone"] else ""
        shape = re.compile(rf"({_ISO_DATE.pattern}{separator}\d\d:\d\d:\d\d{fraction}){suffix}", re.ASCII)
        return cls(separator, "milliseconds" if fraction else "seconds", suffix, shape)

    def format(self, moment: dt.datetime) -> str:
        """The text of a time in UTC."""
        if not self.separator:
            return moment.date().isoformat()
        return moment.isoformat(self.separator, self.timespec).removesuffix(_UTC) + self.suffix

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970; None when the text needs the lenient parser."""
        found = self.shape.fullmatch(text)
        if found is None:
            return None
        try:
            return ms_of(dt.datetime.fromisoformat(f"{found[1]}{_UTC}" if self.separator else f"{text}T00:00{_UTC}"))
        except ValueError:
            return None


def _template(part: Part) -> str:
    if not part.letter:
        return part.text.replace("%", "%%")
    if part.letter in "GEazZX" or (part.letter in "ML" and part.width >= 3):
        return "%s"
    if part.letter in "yY" and part.width == 2:
        return "%02d"
    return f"%0{part.width}d"


def _getter(part: Part) -> Getter:
    if part.letter in _PLAIN:
        return _PLAIN[part.letter] if part.width != 2 or part.letter != "y" else lambda m: m.year % 100
    if part.letter in "ML":
        return _month(part.width)
    if part.letter == "E":
        return (lambda m: WEEKDAYS[m.weekday()]) if part.width >= 4 else (lambda m: WEEKDAYS[m.weekday()][:3])
    if part.letter == "Y" and part.width == 2:
        return lambda m: _week_year(m) % 100
    if part.letter == "z":
        name = "Coordinated Universal Time" if part.width >= 4 else "UTC"
        return lambda _: name
    return _COMPUTED[part.letter]


def _month(width: int) -> Getter:
    if width >= 4:
        return lambda m: MONTHS[m.month - 1]
    if width == 3:
        return lambda m: MONTHS[m.month - 1][:3]
    return attrgetter("month")


def _week_of_year(moment: dt.datetime) -> int:
    """Weeks begin on Sunday, and the first week contains the 1st of January."""
    if _week_year(moment) > moment.year:
        return 1
    return _week_since(moment.replace(month=1, day=1), moment.timetuple().tm_yday)


def _week_since(first: dt.datetime, day: int) -> int:
    return (day + first.isoweekday() % 7 - 1) // 7 + 1


def _week_year(moment: dt.datetime) -> int:
    saturday = moment.toordinal() + 6 - moment.isoweekday() % 7
    next_year = dt.date(moment.year, 12, 31).toordinal() + 1
    return moment.year + (saturday >= next_year)


_PLAIN: Final[dict[str, Getter]] = {
    "y": attrgetter("year"),
    "d": attrgetter("day"),
    "H": attrgetter("hour"),
    "m": attrgetter("minute"),
    "s": attrgetter("second"),
}
_COMPUTED: Final[dict[str, Getter]] = {
    "G": lambda _: "AD",
    "Y": _week_year,
    "w": _week_of_year,
    "W": lambda m: _week_since(m.replace(day=1), m.day),
    "D": lambda m: m.timetuple().tm_yday,
    "F": lambda m: (m.day - 1) // 7 + 1,
    "u": lambda m: m.isoweekday(),
    "a": lambda m: "PM" if m.hour >= 12 else "AM",
    "k": lambda m: m.hour or 24,
    "K": lambda m: m.hour % 12,
    "h": lambda m: m.hour % 12 or 12,
    "S": lambda m: m.microsecond // 1000,
    "Z": lambda _: "+0000",
    "X": lambda _: "Z",
}
