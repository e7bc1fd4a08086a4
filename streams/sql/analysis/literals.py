"""Literals as pieces of Spark's SQL, and texts that stand for points in time."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from streams.model import types
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, sql_double, text_literal
from streams.sql.language.tree import expressions as tree

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
_TIME: Final = re.compile(
    r"(?P<date>\d{4}(?:-\d{1,2}(?:-\d{1,2})?)?)"
    r"(?:T(?:(?P<time>\d{1,2}(?::\d{1,2}(?::\d{1,2}(?:\.\d{1,9})?)?)?)?))?"
    r"(?P<zone>Z|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]+(?:/[A-Za-z_]+)+)?",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def literal(node: tree.Literal) -> Expression:
    """A literal with its type."""
    match node:
        case tree.StringLiteral(text):
            return text_literal(text)
        case tree.IntegerLiteral(number) if INT_MIN <= number <= INT_MAX:
            return Expression(f"({number})" if number < 0 else str(number), types.INTEGER, literal=number)
        case tree.IntegerLiteral(number):
            return Expression(f"bigint('{number}')", types.BIGINT, literal=number)
        case tree.DecimalLiteral(number):
            kind = decimal_type(number)
            return Expression(f"cast('{number:f}' as {types.spark_type(kind)})", kind, literal=number)
        case tree.DoubleLiteral(number):
            return Expression(sql_double(number), types.DOUBLE, literal=number)
        case tree.BooleanLiteral(value):
            return Expression("true" if value else "false", types.BOOLEAN, literal=value)
        case tree.NullLiteral():
            return Expression("null", types.NULL)


def decimal_type(number: Decimal) -> types.Decimal:
    """The type of a number with a point: exactly its digits, and one before the point at least."""
    _, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    return types.bounded(max(len(digits), scale + (1 if abs(number) < 1 else 0), 1), scale)


def time_ms(text: str) -> int:
    """A date and time of ISO 8601, of which parts behind the year may be missing, in milliseconds; UTC by default."""
    found = _TIME.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError(text)
        year, month, day = (int(part) for part in [*found["date"].split("-"), "1", "1"][:3])
        hour, minute, second = [*(found["time"] or "0").split(":"), "0", "0"][:3]
        at = datetime(year, month, day, int(hour), int(minute), tzinfo=_zone(found["zone"]))
    except (ValueError, KeyError, OSError) as error:
        message = f"Failed to parse timestamp '{text}'. Write it like 2024-01-31T23:59:59.999, with a zone if not UTC"
        raise TypeProblem(message) from error
    milliseconds = int(Decimal(second) * 1000)
    return (at - _EPOCH) // timedelta(milliseconds=1) + milliseconds


def _zone(text: str | None) -> tzinfo | None:
    if text is None or text == "Z":
        return ZoneInfo("UTC")
    if text[0] in "+-":
        digits = text[1:].replace(":", "").zfill(2)
        return datetime.strptime(f"{text[0]}{digits:0<4}", "%z").tzinfo
    return ZoneInfo(text)
