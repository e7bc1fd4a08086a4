"""Parses dates as leniently as Java's SimpleDateFormat does.

Numbers may have more or fewer digits than the pattern, excess rolls over (the 32nd of January is the 1st of February),
and text after the last part of the pattern is ignored. The calendar is Gregorian also before 1582.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from connect.transforms.epoch import DAY_MS, days_of
from connect.transforms.java.date_pattern import MONTHS, WEEKDAYS, Part

_ZONE_NAMES: Final = {
    -10: "HST",
    -8: "PST",
    -7: "MST PDT",
    -6: "CST MDT",
    -5: "EST CDT",
    -4: "EDT",
    0: "UTC GMT UT WET",
    1: "CET BST WEST",
    2: "CEST EET",
    3: "EEST MSK",
    9: "JST",
}
_ZONES: Final = {
    **dict.fromkeys(("COORDINATED UNIVERSAL TIME", "GREENWICH MEAN TIME"), 0),
    **{name: hours for hours, names in _ZONE_NAMES.items() for name in names.split()},
}
_ISO_ZONES: Final = {1: r"[+-]\d\d", 2: r"[+-]\d{4}", 3: r"[+-]\d\d:\d\d"}
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_MOST_DIGITS: Final = 18

Fields = dict[str, int]


class DateParser:
    """Parses text by one pattern. `this_year` decides the century of a two-digit year."""

    def __init__(self, parts: tuple[Part, ...], *, this_year: int) -> None:
        followers = (*(part.letter for part in parts[1:]), "")
        pieces = [_piece(part, is_abutting=bool(after)) for part, after in zip(parts, followers, strict=True)]
        self._regex = re.compile("".join(pieces), re.ASCII)
        self._readers = tuple((part.letter, _reader(part, this_year)) for part in parts if part.letter)
        self._is_simple = {letter for letter, _ in self._readers} <= set("yMLdHmsSXZz")

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970, in UTC unless the text has a zone; None when the text does not match."""
        found = self._regex.match(text)
        if found is None:
            return None
        fields: Fields = {}
        for (letter, read), piece in zip(self._readers, found.groups(), strict=True):
            fields[letter] = read(piece)
        return _resolve(fields, is_simple=self._is_simple)


def _piece(part: Part, *, is_abutting: bool) -> str:
    if not part.letter:
        return re.escape(part.text)
    match part.letter:
        case "M" | "L" if part.width >= 3:
            inner = _names(MONTHS)
        case "E":
            inner = _names(WEEKDAYS)
        case "a":
            inner = "(?i:AM|PM)"
        case "G":
            inner = "(?i:AD|BC)"
        case "X":
            inner = f"Z|{_ISO_ZONES[part.width]}"
        case "z" | "Z":
            names = "|".join(sorted(_ZONES, key=len, reverse=True))
            inner = rf"(?i:(?:GMT|UTC)?[+-]\d{{1,2}}:?\d\d|{names})"
        case _:
            inner = rf"\d{{1,{part.width}}}" if is_abutting else rf"-?\d{{1,{_MOST_DIGITS}}}+"
    return rf"[ \t]*+({inner})"


def _names(names: tuple[str, ...]) -> str:
    """Full names come first: May is also its own abbreviation."""
    return f"(?i:{'|'.join(names)}|{'|'.join(name[:3] for name in names)})"


def _reader(part: Part, this_year: int) -> Callable[[str], int]:
    match part.letter:
        case "M" | "L" if part.width >= 3:
            return _position(MONTHS)
        case "E":
            return _position(WEEKDAYS)
        case "a":
            return lambda text: int(text.upper() == "PM")
        case "G":
            return lambda text: int(text.upper() == "AD")
        case "X" | "z" | "Z":
            return _zone_ms
        case "y" | "Y" if part.width <= 2:
            return lambda text: _year(text, this_year)
        case _:
            return int


def _position(names: tuple[str, ...]) -> Callable[[str], int]:
    numbers = {name[:3].lower(): number for number, name in enumerate(names, 1)}
    return lambda text: numbers[text[:3].lower()]


def _year(text: str, this_year: int) -> int:
    """Two digits are the year that ends in them, from 80 years back to 20 ahead."""
    year = int(text)
    if len(text) != 2 or not text.isdigit():
        return year
    latest = this_year + 20
    candidate = latest - latest % 100 + year
    return candidate if candidate <= latest else candidate - 100


def _zone_ms(text: str) -> int:
    name = text.upper()
    if name == "Z":
        return 0
    if name in _ZONES:
        return _ZONES[name] * _HOUR_MS
    digits = name.lstrip("GMTUC").replace(":", "")
    sign, number = (-1 if digits[0] == "-" else 1), digits[1:]
    if len(number) <= 2:
        return sign * int(number) * _HOUR_MS
    return sign * (int(number[:-2]) * _HOUR_MS + int(number[-2:]) * _MINUTE_MS)


def _resolve(fields: Fields, *, is_simple: bool) -> int | None:
    get = fields.get
    hour = get("H", 0) if is_simple else _hour(fields)
    time = hour * _HOUR_MS + get("m", 0) * _MINUTE_MS + get("s", 0) * 1000 + get("S", 0)
    zone = get("X", get("Z", get("z", 0)))
    try:
        days = _month_days(fields) + get("d", 1) - 1 if is_simple else _days(fields)
    except (ValueError, OverflowError):
        return None
    return days * DAY_MS + time - zone


def _hour(fields: Fields) -> int:
    """The last of H, k, K and h in the text; in the morning unless the text says PM."""
    hour = 0
    for letter, value in fields.items():
        if letter == "H":
            hour = value
        elif letter == "k":
            hour = 0 if value == 24 else value
        elif letter in "Kh":
            hour = (0 if letter == "h" and value == 12 else value) + 12 * fields.get("a", 0)
    return hour


def _month_days(fields: Fields) -> int:
    """Days up to the first of the month; months beyond December are in later years."""
    years, month = divmod(fields.get("M", fields.get("L", 1)) - 1, 12)
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    return days_of(dt.date(year + years, month + 1, 1))


def _days(fields: Fields) -> int:
    if "Y" in fields:
        return _week_days(fields["Y"], fields.get("w", 1), weekday=_weekday(fields))
    if "d" in fields or not fields.keys() & set("DwWF"):
        return _month_days(fields) + fields.get("d", 1) - 1
    if "D" in fields:
        return _month_days({**fields, "M": 1, "L": 1}) + fields["D"] - 1
    if "w" in fields:
        return _week_days(fields.get("y", 1970), fields["w"], weekday=_weekday(fields))
    begin = _month_days(fields)
    first = (begin + 4) % 7
    if "F" in fields:
        return begin + (_weekday(fields) - first) % 7 + 7 * (fields["F"] - 1)
    return begin - first + _weekday(fields) + 7 * (fields["W"] - 1)


def _weekday(fields: Fields) -> int:
    """0 for Sunday, where weeks begin."""
    return fields.get("u", fields.get("E", 7)) % 7


def _week_days(year: int, week: int, *, weekday: int) -> int:
    begin = days_of(dt.date(year, 1, 1))
    return begin - (begin + 4) % 7 + 7 * (week - 1) + weekday
