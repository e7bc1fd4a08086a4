"""A text of statements, read one by one: variables, syntax, checks."""

from collections.abc import Iterator
from dataclasses import dataclass

from streams.errors import StatementError
from streams.sql.language.checks.problem import Problem
from streams.sql.language.checks.statements import check_statement
from streams.sql.language.parsing.spark import FIRST_WORDS
from streams.sql.language.parsing.statements import parse_statement
from streams.sql.language.source import Place
from streams.sql.language.tokens import StatementTokens, statements
from streams.sql.language.tree.statements import (
    CreateType,
    DefineVariable,
    Drop,
    DroppedKind,
    Statement,
    UndefineVariable,
)
from streams.sql.language.variables import Variables


@dataclass(frozen=True, slots=True)
class ReadStatement:
    """A statement of a text: its tree, unless it cannot be parsed, and what is wrong with it."""

    place: Place
    statement: Statement | None
    problems: tuple[Problem, ...]
    directives: tuple[str, ...] = ()


def read_script(text: str, variables: Variables | None = None) -> Iterator[ReadStatement]:
    """The statements of a text. DEFINE and CREATE TYPE count for those behind them, as they would when they ran.

    Nothing is raised: a text that is too long is one statement with a problem.
    """
    defined = Variables() if variables is None else variables
    types: set[str] = set()
    found = statements(text, spark_words=FIRST_WORDS)
    while True:
        try:
            tokens = next(found, None)
        except StatementError as error:
            yield _unreadable(error, Place(error.start, error.end))
            return
        if tokens is None:
            return
        if len(tokens.tokens) > 1:
            read = _read(text, tokens, defined, types)
            _remember(read, defined, types)
            yield read


def _read(text: str, tokens: StatementTokens, variables: Variables, types: set[str]) -> ReadStatement:
    place = Place(tokens.tokens[0].start, tokens.tokens[-2].end)
    try:
        replaced = StatementTokens(variables.substitute(tokens.tokens), tokens.directives)
        statement = parse_statement(text, replaced)
    except StatementError as error:
        return _unreadable(error, place)
    directives = tuple(directive.value for directive in tokens.directives)
    return ReadStatement(place, statement, tuple(check_statement(statement, types)), directives)


def _unreadable(error: StatementError, place: Place) -> ReadStatement:
    return ReadStatement(place, None, (Problem(error.message, Place(error.start, error.end)),))


def _remember(read: ReadStatement, variables: Variables, types: set[str]) -> None:
    match read.statement:
        case DefineVariable(name, value):
            variables.define(name, value)
        case UndefineVariable(name):
            variables.undefine(name)
        case CreateType(name):
            types.add(name.name)
        case Drop(DroppedKind.TYPE, name):
            types.discard(name.name)
        case _:
            pass
