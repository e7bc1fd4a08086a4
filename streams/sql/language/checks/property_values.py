"""Properties of WITH clauses: their names, where each is allowed, and its values."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

from streams.sql.language.tree.expressions import BooleanLiteral, IntegerLiteral, Literal, StringLiteral
from streams.sql.language.tree.queries import UNITS


class Where(Flag):
    """The statements that have a WITH clause."""

    CREATE = auto()
    AS_SELECT = auto()
    INSERT = auto()
    ASSERT_TOPIC = auto()


SOURCES: Final = Where.CREATE | Where.AS_SELECT
FORMATS: Final = ("AVRO", "DELIMITED", "JSON", "JSON_SR", "KAFKA", "NONE", "PROTOBUF", "PROTOBUF_NOSR")
INFERRING: Final = frozenset({"AVRO", "JSON_SR", "PROTOBUF"})
"""Formats whose columns can come from the registry."""
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_WINDOW_SIZE: Final = re.compile(r"\s*([0-9]{1,15})\s+([A-Za-z]+)\s*", re.ASCII)
_QUERY_ID: Final = re.compile(r"(?!(?:INSERTQUERY|CTAS|CSAS|CST)_)[A-Za-z0-9_]+", re.IGNORECASE)
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """Where a property is allowed; whether a value is; how a message names the values that are."""

    where: Where
    accepts: Callable[[Literal], bool]
    allowed: str


def text_of(value: Literal) -> str | None:
    """The text of a string."""
    return value.value if isinstance(value, StringLiteral) else None


def number_of(value: Literal) -> int | None:
    """A whole number, also as text."""
    if isinstance(value, IntegerLiteral):
        return value.value
    text = text_of(value)
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) else None


def _one_of(*names: str) -> Callable[[Literal], bool]:
    return lambda value: (text_of(value) or "").upper() in names


def _between(low: int, high: int) -> Callable[[Literal], bool]:
    def accepts(value: Literal) -> bool:
        number = number_of(value)
        return number is not None and low <= number <= high

    return accepts


def _matches(pattern: re.Pattern[str]) -> Callable[[Literal], bool]:
    return lambda value: pattern.fullmatch(text_of(value) or "") is not None


def _is_window_size(value: Literal) -> bool:
    match = _WINDOW_SIZE.fullmatch(text_of(value) or "")
    return match is not None and int(match[1]) > 0 and match[2].upper() in UNITS


def _is_flag(value: Literal) -> bool:
    return isinstance(value, BooleanLiteral) or (text_of(value) or "").lower() in {"true", "false"}


def _is_delimiter(value: Literal) -> bool:
    text = text_of(value) or ""
    return len(text) == 1 or text.upper() in {"SPACE", "TAB"}


def _is_text(value: Literal) -> bool:
    return bool(text_of(value))


_TEXT: Final = "text in single quotes"
_FORMAT: Final = PropertyRule(SOURCES, _one_of(*FORMATS), f"one of {', '.join(FORMATS)}, in single quotes")
_DELIMITER: Final = PropertyRule(SOURCES, _is_delimiter, "one character in single quotes, or 'SPACE' or 'TAB'")
_ID: Final = PropertyRule(SOURCES, _between(1, _INT_MAX), "the id of a schema, a whole number")
_NULLABLE: Final = PropertyRule(SOURCES, _one_of("OPTIONAL", "WRAPPER"), "'OPTIONAL' or 'WRAPPER'")
_FULL_NAME: Final = PropertyRule(SOURCES, _is_text, _TEXT)

RULES: Final = {
    "KAFKA_TOPIC": PropertyRule(
        SOURCES, _matches(_TOPIC), "a topic's name in single quotes: letters, digits, '.', '_' and '-', at most 249"
    ),
    "PARTITIONS": PropertyRule(SOURCES | Where.ASSERT_TOPIC, _between(1, _INT_MAX), "a whole number from 1"),
    "REPLICAS": PropertyRule(SOURCES | Where.ASSERT_TOPIC, _between(1, 2**15 - 1), "a whole number from 1"),
    "RETENTION_MS": PropertyRule(
        SOURCES, lambda value: _between(0, 2**63 - 1)(value) or number_of(value) == -1, "milliseconds, or -1 for ever"
    ),
    "FORMAT": _FORMAT,
    "KEY_FORMAT": _FORMAT,
    "VALUE_FORMAT": _FORMAT,
    "KEY_DELIMITER": _DELIMITER,
    "VALUE_DELIMITER": _DELIMITER,
    "TIMESTAMP": PropertyRule(SOURCES, _is_text, "the name of a column, in single quotes"),
    "TIMESTAMP_FORMAT": PropertyRule(SOURCES, _is_text, "a pattern in single quotes, such as 'yyyy-MM-dd HH:mm:ss'"),
    "WRAP_SINGLE_VALUE": PropertyRule(SOURCES, _is_flag, "TRUE or FALSE"),
    "WINDOW_TYPE": PropertyRule(
        Where.CREATE, _one_of("TUMBLING", "HOPPING", "SESSION"), "'TUMBLING', 'HOPPING' or 'SESSION'"
    ),
    "WINDOW_SIZE": PropertyRule(
        Where.CREATE, _is_window_size, "a number and a unit in single quotes, such as '30 SECONDS'"
    ),
    "KEY_SCHEMA_ID": _ID,
    "VALUE_SCHEMA_ID": _ID,
    "KEY_SCHEMA_FULL_NAME": _FULL_NAME,
    "VALUE_SCHEMA_FULL_NAME": _FULL_NAME,
    "VALUE_AVRO_SCHEMA_FULL_NAME": _FULL_NAME,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _NULLABLE,
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _NULLABLE,
    "ON_ERROR": PropertyRule(Where.AS_SELECT | Where.INSERT, _one_of("DLQ", "SKIP", "FAIL"), "'dlq', 'skip' or 'fail'"),
    "DLQ_TOPIC": PropertyRule(
        Where.AS_SELECT | Where.INSERT, _matches(_TOPIC), "a topic's name in single quotes, at most 249 characters"
    ),
    "SOURCE_CONNECTOR": PropertyRule(Where.CREATE, _is_text, _TEXT),
    "SOURCED_BY_CONNECTOR": PropertyRule(Where.CREATE, _is_text, _TEXT),
    "QUERY_ID": PropertyRule(
        Where.INSERT,
        _matches(_QUERY_ID),
        "letters, digits and _ in single quotes, not beginning with INSERTQUERY_, CTAS_, CSAS_ or CST_",
    ),
}
