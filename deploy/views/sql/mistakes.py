"""Mistakes in statements: their place, and the line of the text with a mark below it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from streams.sql.language.script import ReadStatement
from streams.sql.language.source import Source

_CONTEXT: Final = 100
"""How many characters of a long line are shown on each side of a mistake."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake; lines and columns are counted from 1, and the end is excluded."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a line around a mistake: what stands before it, the mistake, and what follows."""

    before: str
    marked: str
    after: str


def mistakes(source: Source, statements: Iterable[ReadStatement]) -> list[Mistake]:
    """The mistakes of all statements, in the order of the text."""
    found = []
    for statement in statements:
        for problem in statement.problems:
            start, end = source.position(problem.place.start), source.position(problem.place.end)
            found.append(Mistake(start.line, start.column, end.line, end.column, problem.message))
    return found


def excerpt(source: Source, mistake: Mistake) -> Excerpt:
    """The line where a mistake begins; a mistake of several lines is marked to the end of the first."""
    line = source.line(mistake.line)
    start = mistake.column - 1
    end = mistake.end_column - 1 if mistake.end_line == mistake.line else len(line)
    marked = line[start : max(end, start + 1)]
    before = line[max(0, start - _CONTEXT) : start]
    after = line[start + len(marked) : start + len(marked) + _CONTEXT]
    return Excerpt(
        ("..." if start > _CONTEXT else "") + before.replace("\t", " "),
        marked[:_CONTEXT].replace("\t", " "),
        "" if len(marked) > _CONTEXT else after.replace("\t", " "),
    )
