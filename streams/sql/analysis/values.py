"""INSERT INTO ... VALUES: the values of the columns, computed here, or by the engine where that is not possible."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from streams.errors import StatementError
from streams.model import types
from streams.model.pull import PullPlan
from streams.model.sources import ROWTIME, Column, Source
from streams.model.types import BIGINT, NULL, SqlType, contains, quoted
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.coercion import Map, coerced
from streams.sql.analysis.computing import EngineNeeded, computed
from streams.sql.analysis.mistakes import mistake, typing
from streams.sql.analysis.scope import Scope
from streams.sql.analysis.typed import Typer
from streams.sql.casts import cast
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, functions_of
from streams.sql.language.tree.expressions import Expression as Written
from streams.sql.language.tree.node import Identifier, Node
from streams.sql.language.tree.statements import InsertValues
from streams.sql.language.words import did_you_mean

Compute: TypeAlias = Callable[[PullPlan], Sequence[object]]
"""Has the engine carry out a plan that reads nothing and gives one row: the values of its columns."""


def insert_values(statement: InsertValues, source: Source, catalog: Catalog, compute: Compute) -> dict[str, object]:
    """The row: for each column, and ROWTIME if it is given, a Python value. Asks the engine at most once."""
    row, written = _computed_here(statement, source, catalog)
    if written:
        typed = _typed(written, source, catalog)
        found = compute(_plan(list(typed.values())))
        kinds = _kinds(source)
        for (name, one), value in zip(typed.items(), found, strict=True):
            with _failing(source, name, written[name]):
                row[name] = coerced(_with_maps(value, one.type), kinds[name])
    _check_row(row, source, statement.target)
    return row


def check_values(statement: InsertValues, source: Source, catalog: Catalog) -> None:
    """Raise the mistakes of a statement that show without the engine."""
    row, written = _computed_here(statement, source, catalog)
    _typed(written, source, catalog)
    _check_row({**row, **dict.fromkeys(written, "")}, source, statement.target)


def _computed_here(
    statement: InsertValues, source: Source, catalog: Catalog
) -> tuple[dict[str, object], dict[str, Written]]:
    """The row, and the expressions of it that the engine has to compute."""
    _check_source(statement, source)
    kinds = _kinds(source)
    names = [name.name for name in statement.columns] or [column.name for column in source.columns]
    nodes: list[Node] = list(statement.columns) or [statement.target] * len(names)
    if len(names) != len(statement.values):
        cause = f"Expected a value for each column. Expected Columns: {names}. Got {len(statement.values)} values."
        raise _failed(source, cause, statement.values[-1])
    row: dict[str, object] = {column.name: None for column in source.columns}
    written: dict[str, Written] = {}
    for name, node, value in zip(names, nodes, statement.values, strict=True):
        if name not in kinds:
            cause = f"Column name {name} does not exist.{did_you_mean(name, kinds)}"
            raise _failed(source, cause, node)
        with _failing(source, name, value):
            try:
                row[name] = coerced(computed(value, catalog), kinds[name])
            except EngineNeeded:
                written[name] = value
    return row, written


def _kinds(source: Source) -> dict[str, SqlType]:
    return {column.name: column.sql_type for column in source.columns} | {ROWTIME: BIGINT}


def _typed(written: Mapping[str, Written], source: Source, catalog: Catalog) -> dict[str, Expression]:
    """Expressions in Spark's SQL."""
    nothing, typer, kinds = Scope(()), Typer(catalog, {}), _kinds(source)
    found = {}
    for name, node in written.items():
        with _failing(source, name, node):
            one = typer.expression(nothing.resolved(node, "VALUES"))
            with typing(node):
                # Rows from Spark have no columns of the type of NULL.
                found[name] = cast(one, kinds[name]) if contains(one.type, NULL) else one
    return found


def _plan(typed: Sequence[Expression]) -> PullPlan:
    columns = tuple(Column(f"value_{number}", str(one.type)) for number, one in enumerate(typed))
    texts = (f"{one.text} AS {quoted(column.name)}" for one, column in zip(typed, columns, strict=True))
    return PullPlan(columns=columns, sql=f"SELECT {', '.join(texts)}", functions=tuple(sorted(functions_of(*typed))))


def _with_maps(value: object, kind: SqlType) -> object:
    """A value of a type, with its MAPs distinguished from its STRUCTs."""
    match kind:
        case types.Array(element) if isinstance(value, list):
            return [_with_maps(item, element) for item in value]
        case types.Map(_, content) if isinstance(value, dict):
            return Map({name: _with_maps(item, content) for name, item in value.items()})
        case types.Struct(fields) if isinstance(value, dict):
            return {field.name: _with_maps(value.get(field.name), field.type) for field in fields}
        case _:
            return value


@contextmanager
def _failing(source: Source, name: str, node: Node) -> Iterator[None]:
    try:
        yield
    except TypeProblem as problem:
        raise _failed(source, f"{name}: {problem}.", node) from problem
    except StatementError as error:
        message = f"Failed to insert values into '{source.name}'. {error.message}"
        raise StatementError(message, start=error.start, end=error.end) from error


def _failed(source: Source, cause: str, node: Node) -> StatementError:
    return mistake(node, f"Failed to insert values into '{source.name}'. {cause}")


def _check_source(statement: InsertValues, source: Source) -> None:
    refused = None
    if source.window is not None:
        refused = f"Cannot insert values into windowed {source.kind.lower()}!"
    elif source.is_read_only:
        refused = f"Cannot insert values into read-only {source.kind.lower()}: {source.name}"
    if refused is not None:
        raise mistake(statement.target, refused)
    headers = {header.name for header in source.headers}
    for name in statement.columns:
        if name.name in headers:
            raise _failed(source, f"Cannot insert into HEADER columns: {name.name}", name)


def _check_row(row: Mapping[str, object], source: Source, target: Identifier) -> None:
    missing = [column.name for column in source.key if row[column.name] is None]
    if source.kind == "TABLE" and missing:
        cause = f"Value for primary key column(s) {', '.join(missing)} is required for tables."
        raise _failed(source, cause, target)
    time = row.get(ROWTIME)
    if isinstance(time, int) and time < 0:
        raise _failed(source, f"ROWTIME is milliseconds since 1970, at least 0, not {time}.", target)
