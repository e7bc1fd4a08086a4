"""A text as the terminal runs it: statement by statement, with the commands that are the terminal's own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from streams.errors import StatementError
from streams.sql.language.checks.problem import Problem
from streams.sql.language.script import read_script
from streams.sql.language.source import Place
from streams.sql.language.tokens import statements
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import PrintTopic, SparkStatement, Statement
from streams.sql.language.variables import Variables

COMMANDS: Final = ("CLEAR", "EXIT", "HELP", "HISTORY", "OUTPUT", "QUIT", "SERVER", "SPOOL", "VERSION", "WRAP")
"""The terminal's own, by their first word; none of them begins a statement."""
_COMMAND: Final = re.compile(rf"\s*({'|'.join(COMMANDS)}|RUN\s+SCRIPT)\b[^;]*;?\s*", re.IGNORECASE)
_SELECT: Final = re.compile(r"\s*(SELECT|WITH|VALUES)\b", re.IGNORECASE)


class How(Enum):
    """How a part of a text is run."""

    HERE = auto()
    """By the terminal itself: a command of its own."""
    COMMAND = auto()
    """By the service, which answers once."""
    PULL = auto()
    """By the service, which answers with rows, and ends."""
    PUSH = auto()
    """The same, and it does not end."""
    PRINT = auto()
    """By the service, which answers with lines."""


@dataclass(frozen=True, slots=True)
class Part:
    """One statement or command of a text."""

    text: str
    """Without its semicolon."""
    place: Place
    how: How
    statement: Statement | None = None
    problems: tuple[Problem, ...] = ()


def parts_of(text: str, variables: Mapping[str, str]) -> Iterator[Part]:
    """The parts of a text; nothing is raised for a text that is wrong."""
    for read in read_script(text, Variables(variables)):
        own = text[read.place.start : read.place.end]
        if _COMMAND.fullmatch(own):
            yield Part(own, read.place, How.HERE)
        else:
            yield Part(own, read.place, _how(own, read.statement), read.statement, read.problems)


def is_command(line: str) -> bool:
    """Whether a line is a command of the terminal, which needs no semicolon."""
    return "\n" not in line.strip() and _COMMAND.fullmatch(line) is not None


def is_complete(text: str) -> bool:
    """Whether a text can be run: nothing but whole statements, or a command."""
    if not text.strip() or is_command(text):
        return True
    try:
        found = list(statements(text))
    except StatementError:
        return True  # the reader says what is wrong with it
    return not found or found[-1].tokens[-1].value == ";"


def _how(text: str, statement: Statement | None) -> How:
    match statement:
        case Query(emit=None):
            return How.PULL
        case Query():
            return How.PUSH
        case PrintTopic():
            return How.PRINT
        case SparkStatement() if _SELECT.match(text):
            return How.PULL
        case _:
            return How.COMMAND
