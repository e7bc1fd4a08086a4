"""Functions of dates and times, which are in UTC unless a zone is given."""

import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streams.sql.casts import midnight
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, sql_text
from streams.sql.functions.model import Call, Function, Overload, overload

_UNITS: Final = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
_MICROS_MAX: Final = 2**63 - 1 - 2 * 86_400_000_000
_LETTERS: Final = frozenset("GyuMLdDEaHhKkmsSVzOXxQqF")
"""What Spark's patterns may consist of; Java's have more."""
_DATE_LETTERS: Final = frozenset("GyuMLdDEQqF")
_TIME_LETTERS: Final = frozenset("aHhKkmsS")
_ZONE: Final = re.compile(r"(?:UTC|GMT|UT)?[+-]\d{1,2}(?::?\d{2})?|Z")
_PATTERNS: Final = "patterns are literals of the letters that Spark knows (no Y w W e c n N A B)"
_BATCH: Final = "the same for all records of a batch"


def _time(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "DATE / TIME", description, overloads)


def _pattern(call: Call, letters: frozenset[str] = _LETTERS) -> str:
    """The pattern, which has to be a literal: one that Spark cannot read would end the query."""
    pattern = str(call.literal("pattern"))
    plain = re.sub(r"'(?:[^']|'')*'", "", pattern)
    wrong = sorted({letter for letter in plain if letter.isascii() and letter.isalpha()} - letters)
    if wrong:
        raise TypeProblem(f"The pattern {pattern!r} has letters that cannot be used here: {', '.join(wrong)}")
    if "'" in plain or re.search(r"[{}#]", plain):
        raise TypeProblem(f"The pattern {pattern!r} has a quote that is not closed, or one of {{ }} #")
    if re.search(r"([^S\W])\1{5,}|S{10,}", plain) or re.search(r"([dHhKkms])\1\1", plain):
        raise TypeProblem(f"The pattern {pattern!r} repeats a letter too often")
    # A 'u' is the year that a 'y' is in Spark's patterns.
    parts = re.split(r"('(?:[^']|'')*')", pattern)
    return sql_text("".join(part if part.startswith("'") else part.replace("u", "y") for part in parts))


def _zone(value: Expression) -> str | None:
    """A zone that is a literal, and known; None if it is not a literal."""
    if not isinstance(value.literal, str):
        return None
    try:
        if not _ZONE.fullmatch(value.literal):
            ZoneInfo(value.literal)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise TypeProblem(f"There is no time zone {value.literal!r}") from None
    return value.text


def _shifted(text: str, zone: Expression | None, *, back: bool) -> str:
    """A time as a clock in a zone shows it, or back from there."""
    if zone is None:
        return text
    known = _zone(zone)
    if known is not None:
        # Within a day of the ends of time, Spark would end the query.
        near = f"unix_micros({text}) between -{_MICROS_MAX}L and {_MICROS_MAX}L"
        return f"if({near}, {'to' if back else 'from'}_utc_timestamp({text}, {known}), null)"
    return f"timestamp_micros(caudal_shift_zone(unix_micros({text}), {zone.text}, {'true' if back else 'false'}))"


def _format_timestamp(text: str, call: Call) -> str:
    return f"date_format({_shifted(text, call.arguments.get('zone'), back=False)}, {_pattern(call)})"


def _format_days(call: Call) -> str:
    day = midnight(f"date_from_unix_date({call.text('days')})")
    return f"date_format({day}, {_pattern(call, _DATE_LETTERS)})"


def _parse_timestamp(call: Call) -> str:
    parsed = f"try_to_timestamp({call.text('text')}, {_pattern(call)})"
    return f"date_trunc('MILLISECOND', {_shifted(parsed, call.arguments.get('zone'), back=True)})"


def _convert(call: Call) -> str:
    there = _shifted(call.text("time"), call.arguments["from_zone"], back=True)
    return _shifted(there, call.arguments["to_zone"], back=False)


def _unit(call: Call) -> int:
    word = str(call.literal("unit")).upper()
    unit = _UNITS.get(word.removesuffix("S"))
    if unit is None:
        raise TypeProblem(f"{word} is not one of {', '.join(f'{name}S' for name in _UNITS)}")
    return unit


def _moved(text: str, call: Call, sign: str) -> str:
    """Microseconds since the epoch; NULL where there are too many."""
    step = f"try_multiply(cast({call.text('n')} as bigint), {sign}{_unit(call)}L)"
    return f"try_add(unix_micros({text}), {step})"


def _moved_timestamp(call: Call, sign: str) -> str:
    return f"timestamp_micros({_moved(call.text('time'), call, sign)})"


def _moved_date(call: Call, sign: str) -> str:
    micros = _moved(midnight(call.text("time")), call, sign)
    return f"date_from_unix_date(try_cast({micros} div 86400000000 as int))"


def _moved_time(call: Call, sign: str) -> str:
    step = f"cast({call.text('n')} as bigint) * {sign}{_unit(call) // 1000}L"
    return f"cast(time_from_millis(pmod(time_to_millis({call.text('time')}) + {step}, 86400000L)) as time(3))"


def _adding(kind: str) -> tuple[Function, ...]:
    write = {"TIMESTAMP": _moved_timestamp, "DATE": _moved_date, "TIME": _moved_time}[kind]
    return (
        _time(
            f"{kind}ADD",
            f"A {kind} some units of time later.",
            overload(f"unit UNIT, n INT, time {kind}", kind, lambda call: write(call, "")),
        ),
        _time(
            f"{kind}SUB",
            f"A {kind} some units of time earlier.",
            overload(f"unit UNIT, n INT, time {kind}", kind, lambda call: write(call, "-")),
        ),
    )


_FROM_MILLIS: Final = "timestamp_micros(try_multiply({ms}, 1000L))"

FUNCTIONS: Final = (
    _time(
        "UNIX_TIMESTAMP",
        "The time now, or a TIMESTAMP, as milliseconds since 1970.",
        overload("", "BIGINT", "unix_millis(current_timestamp())", difference=_BATCH),
        overload("time TIMESTAMP", "BIGINT", "unix_millis({time})"),
    ),
    _time(
        "UNIX_DATE",
        "Today, or a DATE, as days since 1970.",
        overload("", "INT", "unix_date(current_date())", difference=f"in UTC; {_BATCH}"),
        overload("date DATE", "INT", "unix_date({date})"),
    ),
    _time(
        "FROM_UNIXTIME",
        "The TIMESTAMP so many milliseconds after 1970 began.",
        overload("ms BIGINT", "TIMESTAMP", _FROM_MILLIS),
    ),
    _time(
        "FROM_DAYS",
        "The DATE so many days after 1970 began.",
        overload("days INT", "DATE", "date_from_unix_date({days})"),
    ),
    _time(
        "FORMAT_TIMESTAMP",
        "A TIMESTAMP as a text, in UTC or in a zone.",
        overload(
            "time TIMESTAMP, pattern STRING",
            "STRING",
            lambda call: _format_timestamp(call.text("time"), call),
            difference=_PATTERNS,
        ),
        overload(
            "time TIMESTAMP, pattern STRING, zone STRING",
            "STRING",
            lambda call: _format_timestamp(call.text("time"), call),
            difference=f"letters of zones print UTC; {_PATTERNS}",
        ),
    ),
    _time(
        "PARSE_TIMESTAMP",
        "The TIMESTAMP that a text tells, in UTC or in a zone.",
        overload("text STRING, pattern STRING", "TIMESTAMP", _parse_timestamp, difference=_PATTERNS),
        overload("text STRING, pattern STRING, zone STRING", "TIMESTAMP", _parse_timestamp, difference=_PATTERNS),
    ),
    _time(
        "FORMAT_DATE",
        "A DATE as a text.",
        overload(
            "date DATE, pattern STRING",
            "STRING",
            lambda call: f"date_format({midnight(call.text('date'))}, {_pattern(call, _DATE_LETTERS)})",
            difference=_PATTERNS,
        ),
    ),
    _time(
        "FORMAT_TIME",
        "A TIME as a text.",
        overload(
            "time TIME, pattern STRING",
            "STRING",
            lambda call: f"date_format({call.text('time')}, {_pattern(call, _TIME_LETTERS)})",
            difference=_PATTERNS,
        ),
    ),
    _time(
        "PARSE_DATE",
        "The DATE that a text tells.",
        overload(
            "text STRING, pattern STRING",
            "DATE",
            lambda call: f"cast(try_to_timestamp({call.text('text')}, {_pattern(call, _DATE_LETTERS)}) as date)",
            difference=_PATTERNS,
        ),
    ),
    _time(
        "PARSE_TIME",
        "The TIME that a text tells.",
        overload(
            "text STRING, pattern STRING",
            "TIME",
            lambda call: f"cast(try_to_time({call.text('text')}, {_pattern(call, _TIME_LETTERS)}) as time(3))",
            difference=_PATTERNS,
        ),
    ),
    _time(
        "CONVERT_TZ",
        "The time that a clock in one zone shows when a clock in another shows this.",
        overload("time TIMESTAMP, from_zone STRING, to_zone STRING", "TIMESTAMP", _convert),
    ),
    *_adding("TIMESTAMP"),
    *_adding("DATE"),
    *_adding("TIME"),
    _time(
        "TIMESTAMPTOSTRING",
        "Milliseconds since 1970 as a text. FORMAT_TIMESTAMP replaces it.",
        overload(
            "ms BIGINT, pattern STRING",
            "STRING",
            lambda call: _format_timestamp(_FROM_MILLIS.replace("{ms}", call.text("ms")), call),
            difference=f"in UTC, not in the server's zone; {_PATTERNS}",
        ),
        overload(
            "ms BIGINT, pattern STRING, zone STRING",
            "STRING",
            lambda call: _format_timestamp(_FROM_MILLIS.replace("{ms}", call.text("ms")), call),
            difference=_PATTERNS,
        ),
    ),
    _time(
        "STRINGTOTIMESTAMP",
        "Milliseconds since 1970 of the time that a text tells. PARSE_TIMESTAMP replaces it.",
        overload(
            "text STRING, pattern STRING",
            "BIGINT",
            lambda call: f"unix_millis({_parse_timestamp(call)})",
            difference=f"in UTC, not in the server's zone; {_PATTERNS}",
        ),
        overload(
            "text STRING, pattern STRING, zone STRING",
            "BIGINT",
            lambda call: f"unix_millis({_parse_timestamp(call)})",
            difference=_PATTERNS,
        ),
    ),
    _time(
        "DATETOSTRING",
        "Days since 1970 as a text. FORMAT_DATE replaces it.",
        overload(
            "days INT, pattern STRING",
            "STRING",
            _format_days,
            difference=_PATTERNS,
        ),
    ),
    _time(
        "STRINGTODATE",
        "Days since 1970 of the date that a text tells. PARSE_DATE replaces it.",
        overload(
            "text STRING, pattern STRING",
            "INT",
            lambda call: (
                f"unix_date(cast(try_to_timestamp({call.text('text')}, {_pattern(call, _DATE_LETTERS)}) as date))"
            ),
            difference=_PATTERNS,
        ),
    ),
)
