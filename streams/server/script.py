"""The statements of a request: read, checked as far as they can be without the catalog, and with their texts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from streams.catalog.state import State
from streams.errors import StatementError
from streams.server.errors import BadStatement
from streams.sql.language.checks.problem import Problem
from streams.sql.language.checks.statements import check_statement
from streams.sql.language.script import ReadStatement, read_script
from streams.sql.language.source import Source as Text
from streams.sql.language.tree.expressions import StringLiteral
from streams.sql.language.tree.statements import CreateAsSelect, CreateType, Property, Statement
from streams.sql.language.variables import Variables

_MODE: Final = "REPLACE.MODE"
_FROM: Final = "REPLACE.FROM"
_MODES: Final = ("in-place", "restart", "side-by-side")
_STARTS: Final = ("earliest", "latest")
STATEMENTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """How CREATE OR REPLACE puts a new query in the place of a running one."""

    mode: str = "in-place"
    start: str = "earliest"
    """Where a query that does not go on with the old state begins."""
    is_given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A statement of a request."""

    statement: Statement
    text: str
    """As it was written, with a semicolon."""
    whole: str
    """The text that it is part of, which the places of the tree point into."""
    replacing: Replacing = Replacing()

    def located(self, error: StatementError) -> BadStatement:
        """An error in it, with line and column."""
        return BadStatement(located(self.whole, error), self.text)


def read_statements(text: str, variables: Variables | None, state: State) -> Iterator[Written]:
    """The statements of a text, one after the other. Raises BadStatement at the first that cannot be read.

    `variables` is changed by DEFINE and UNDEFINE; None leaves `${...}` alone.
    """
    types = set(state.types())
    count = 0
    for read in read_script(text, variables):
        count += 1
        if count > STATEMENTS_MAX:
            raise BadStatement(f"There are more than {STATEMENTS_MAX} statements in the request: send fewer at once")
        yield _written(text, read, types)
    if count == 0:
        raise BadStatement("There is no statement in the request")


def _written(text: str, read: ReadStatement, types: set[str]) -> Written:
    shown = text[read.place.start : read.place.end].rstrip("; \n\t") + ";"
    if read.statement is None:
        raise _refused(text, shown, read.problems[0])
    try:
        statement, replacing = _without_replacing(read.statement)
    except StatementError as error:
        raise BadStatement(located(text, error), shown) from error
    # Checked again, because now it is known which types have been defined before.
    problems = check_statement(statement, types)
    if problems:
        raise _refused(text, shown, problems[0])
    if isinstance(statement, CreateType):
        types.add(statement.name.name)
    return Written(statement=statement, text=shown, whole=text, replacing=replacing)


def _without_replacing(statement: Statement) -> tuple[Statement, Replacing]:
    """The statement without the properties that say how it replaces another, and what they say."""
    if not isinstance(statement, CreateAsSelect):
        return statement, Replacing()
    own = {item.name: item for item in statement.properties if item.name in (_MODE, _FROM)}
    if not own:
        return statement, Replacing()
    if not statement.or_replace:
        item = next(iter(own.values()))
        raise _mistake(item, f"{item.name.lower()} is for CREATE OR REPLACE. Remove it, or write OR REPLACE.")
    mode = _choice(own.get(_MODE), _MODES, "in-place")
    start = _choice(own.get(_FROM), _STARTS, "earliest")
    if mode == "in-place" and _FROM in own:
        message = "With replace.mode = 'in-place' the query goes on where it is. Remove replace.from."
        raise _mistake(own[_FROM], message)
    rest = tuple(item for item in statement.properties if item.name not in own)
    return replace(statement, properties=rest), Replacing(mode=mode, start=start, is_given=True)


def _choice(item: Property | None, allowed: tuple[str, ...], default: str) -> str:
    if item is None:
        return default
    value = item.value.value.lower() if isinstance(item.value, StringLiteral) else ""
    if value not in allowed:
        raise _mistake(item, f"{item.name.lower()} is one of {', '.join(map(repr, allowed))}.")
    return value


def _mistake(item: Property, message: str) -> StatementError:
    return StatementError(message, start=item.place.start, end=item.place.end)


def _refused(text: str, shown: str, problem: Problem) -> BadStatement:
    error = StatementError(problem.message, start=problem.place.start, end=problem.place.end)
    return BadStatement(located(text, error), shown)


def located(text: str, error: StatementError) -> str:
    """The message of an error with its place, as ksqlDB writes both."""
    line, column = Text(text).position(error.start)
    return f"line {line}:{column}: {error.message}"
