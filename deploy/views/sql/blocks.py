"""What an answer is shown as: tables, named values, lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; columns whose name ends in `#` are aligned to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class NamedValues:
    """Names and values below a title."""

    title: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Text; commands in it are in backticks. A remark is less important than what it stands below."""

    lines: tuple[str, ...]
    is_remark: bool = False


Block: TypeAlias = Grid | NamedValues | Lines


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> Grid:
    """A table of values as they are printed; nothing for what is missing."""
    return Grid(tuple(columns), tuple(tuple(text_of(value) for value in row) for row in rows), title)


def named(title: str, values: Iterable[tuple[str, object]]) -> NamedValues:
    """Those of the values that are there."""
    return NamedValues(title, tuple((name, text_of(value)) for name, value in values if value not in (None, "", [])))


def remark(*lines: str) -> Lines:
    """What to know or do next."""
    return Lines(lines, is_remark=True)


def text_of(value: object) -> str:
    """A value of an answer as text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return ", ".join(map(text_of, value))
        case _:
            return str(value)
