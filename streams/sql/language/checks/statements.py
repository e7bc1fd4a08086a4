"""All checks of a statement that need no cluster."""

from collections.abc import Collection, Iterator, Sized
from itertools import chain, islice
from typing import Final

from streams.sql.language.checks.columns import check_columns
from streams.sql.language.checks.expressions import check_expressions
from streams.sql.language.checks.names import check_column_name, check_source_name
from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.checks.properties import check_properties, check_source_properties
from streams.sql.language.checks.property_values import Where
from streams.sql.language.checks.queries import Purpose, check_query, purpose_of
from streams.sql.language.checks.types import check_types, repeated
from streams.sql.language.tree.expressions import ColumnReference, Expression, Lambda
from streams.sql.language.tree.node import Identifier, walk
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import (
    AlterSource,
    AssertSource,
    AssertTopic,
    AssertValues,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    Explain,
    InsertSelect,
    InsertValues,
    PrintTopic,
    SourceKind,
    Statement,
)
from streams.sql.language.tree.types import TYPE_NAMES

MAX_PROBLEMS: Final = 100
"""Per statement: each of them may be compared with names that were probably meant, which takes time."""
_NOT_INSERTABLE: Final = frozenset({"ROWPARTITION", "ROWOFFSET", "WINDOWSTART", "WINDOWEND"})


def check_statement(statement: Statement, known_types: Collection[str] = ()) -> list[Problem]:
    """The problems of a statement, in the order of the text; `known_types` are names that CREATE TYPE has given."""
    problems = chain(_own(statement), check_types(statement, known_types), check_expressions(statement))
    found = set(islice(problems, MAX_PROBLEMS))
    return sorted(found, key=lambda problem: (problem.place, problem.message))


def _own(statement: Statement) -> Iterator[Problem]:
    match statement:
        case Query():
            yield from check_query(statement, purpose_of(statement))
        case CreateSource():
            yield from _create_source(statement)
        case CreateAsSelect():
            yield from _create_as_select(statement)
        case InsertSelect(target, query, properties):
            yield from check_source_name(target)
            yield from check_properties(properties, Where.INSERT)
            yield from check_query(query, Purpose.STORED)
        case InsertValues(_, columns, values) | AssertValues(_, columns, values):
            yield from _insert_values(columns, values)
        case Explain(Query() | CreateAsSelect() as subject):
            yield from _own(subject)
        case AssertSource(kind, _, columns, _):
            yield from check_columns(kind, columns)
        case AssertTopic(_, properties):
            yield from check_properties(properties, Where.ASSERT_TOPIC)
        case AlterSource() | CreateType() | CreateConnector() | PrintTopic():
            yield from _others(statement)
        case _:
            pass


def _create_source(statement: CreateSource) -> Iterator[Problem]:
    yield from check_source_name(statement.name)
    if statement.is_source and statement.or_replace:
        yield at(statement.name, "A SOURCE cannot be replaced. Remove OR REPLACE, and DROP it first.")
    yield from check_columns(statement.kind, statement.columns)
    yield from check_properties(statement.properties, Where.CREATE)
    yield from check_source_properties(statement)


def _create_as_select(statement: CreateAsSelect) -> Iterator[Problem]:
    yield from check_source_name(statement.name)
    yield from check_properties(statement.properties, Where.AS_SELECT)
    query = statement.query
    if statement.kind is SourceKind.STREAM and query.group_by:
        message = "Invalid result type. GROUP BY produces a TABLE. Use CREATE TABLE ... AS SELECT."
        yield at(statement.name, message)
    if statement.kind is SourceKind.TABLE and query.partition_by:
        message = "Invalid result type. PARTITION BY produces a STREAM. Use CREATE STREAM ... AS SELECT."
        yield at(statement.name, message)
    yield from check_query(query, Purpose.STORED)


def _insert_values(columns: tuple[Identifier, ...], values: tuple[Expression, ...]) -> Iterator[Problem]:
    yield from repeated(list(columns), "Column {} is listed twice. Remove one of the two.")
    for column in columns:
        if column.name in _NOT_INSERTABLE:
            yield at(column, f"{column.name} cannot be inserted. Remove it and its value.")
    if columns and len(columns) != len(values):
        last = values[-1] if values else columns[-1]
        yield at(
            last, f"There are {_count(columns, 'column')} and {_count(values, 'value')}. Write a value for each column."
        )
    for value in values:
        parameters = {name.name for node in walk(value) if isinstance(node, Lambda) for name in node.parameters}
        for node in walk(value):
            if isinstance(node, ColumnReference) and node.name.name not in parameters:
                yield at(node, f"{node.name.name} is a name, not a value. Put text in single quotes: '...'.")


def _count(items: Sized, word: str) -> str:
    return f"{len(items)} {word}{'' if len(items) == 1 else 's'}"


def _others(statement: AlterSource | CreateType | CreateConnector | PrintTopic) -> Iterator[Problem]:
    match statement:
        case AlterSource(_, _, columns):
            yield from repeated([column.name for column in columns], "Column {} is added twice. Remove one of the two.")
            for column in columns:
                yield from check_column_name(column.name)
        case CreateType(name):
            if name.name in TYPE_NAMES:
                yield at(name, f"{name.name} is a type of the language already. Choose another name.")
        case CreateConnector(_, name, properties):
            yield from _connector(name, [item.name for item in properties])
        case PrintTopic(_, _, interval, limit):
            if interval is not None and interval < 1:
                yield at(statement, f"INTERVAL is 1 or more, not {interval}.")
            if limit is not None and limit < 0:
                yield at(statement, f"LIMIT is 0 or more, not {limit}.")


def _connector(name: Identifier, properties: list[str]) -> Iterator[Problem]:
    if "connector.class" not in [item.lower() for item in properties]:
        yield at(name, "The connector's class is missing: write 'connector.class' = '...' in WITH.")
    for item in sorted({item for item in properties if properties.count(item) > 1}):
        yield at(name, f"{item} is set twice. Remove one of the two.")
