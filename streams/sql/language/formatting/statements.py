"""Statements, each with the semicolon at its end."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from streams.sql.language.formatting.expressions import format_expression, format_string
from streams.sql.language.formatting.queries import format_duration, format_query
from streams.sql.language.formatting.types import format_name, format_type
from streams.sql.language.tree.expressions import Expression
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import Duration, Query
from streams.sql.language.tree.statements import (
    AlterSource,
    AlterSystem,
    AssertSchema,
    AssertSource,
    AssertTombstone,
    AssertTopic,
    AssertValues,
    Column,
    ColumnRole,
    ControlQuery,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    DefineVariable,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    PrintTopic,
    Property,
    RunScript,
    SetProperty,
    Show,
    SparkStatement,
    Statement,
    UndefineVariable,
    UnsetProperty,
)


def format_statement(statement: Statement) -> str:
    """A statement as text that parses to the same tree."""
    return _FORMATS[type(statement)](statement) + ";"


def _words(*words: str) -> str:
    return " ".join([word for word in words if word])


def _when(condition: bool, words: str) -> str:
    return words if condition else ""


def _columns(columns: Sequence[Column]) -> str:
    return "(\n  " + ",\n  ".join([_column(column) for column in columns]) + "\n)" if columns else ""


def _column(column: Column) -> str:
    role = f"HEADER({format_string(column.header or '')})" if column.role is ColumnRole.HEADER else column.role.value
    return _words(format_name(column.name), format_type(column.type), role)


def _with(properties: Sequence[Property], *, keep_case: bool = False) -> str:
    if not properties:
        return ""
    names = [format_string(item.name) if keep_case else format_name(Identifier(item.name)) for item in properties]
    values = [f"{name} = {format_expression(item.value)}" for name, item in zip(names, properties, strict=True)]
    return f"WITH ({', '.join(values)})"


def _names(names: Sequence[Identifier]) -> str:
    return f"({', '.join([format_name(name) for name in names])})" if names else ""


def _values(values: Sequence[Expression]) -> str:
    return f"({', '.join([format_expression(value) for value in values])})"


def _timeout(timeout: Duration | None) -> str:
    return "" if timeout is None else f"TIMEOUT {format_duration(timeout)}"


def _create_source(node: CreateSource) -> str:
    return _words(
        "CREATE",
        _when(node.or_replace, "OR REPLACE"),
        _when(node.is_source, "SOURCE"),
        node.kind.value,
        _when(node.if_not_exists, "IF NOT EXISTS"),
        format_name(node.name),
        _columns(node.columns),
        _with(node.properties),
    )


def _create_as_select(node: CreateAsSelect) -> str:
    head = _words(
        "CREATE",
        _when(node.or_replace, "OR REPLACE"),
        node.kind.value,
        _when(node.if_not_exists, "IF NOT EXISTS"),
        format_name(node.name),
        _with(node.properties),
        "AS",
    )
    return f"{head}\n{format_query(node.query)}"


def _create_connector(node: CreateConnector) -> str:
    head = _words("CREATE", node.kind.value, "CONNECTOR", _when(node.if_not_exists, "IF NOT EXISTS"))
    return _words(head, format_name(node.name), _with(node.properties, keep_case=True))


def _create_type(node: CreateType) -> str:
    head = _words("CREATE TYPE", _when(node.if_not_exists, "IF NOT EXISTS"), format_name(node.name))
    return f"{head} AS {format_type(node.type)}"


def _insert_select(node: InsertSelect) -> str:
    return f"{_words('INSERT INTO', format_name(node.target), _with(node.properties))}\n{format_query(node.query)}"


def _insert_values(node: InsertValues) -> str:
    return _words("INSERT INTO", format_name(node.target), _names(node.columns), "VALUES", _values(node.values))


def _drop(node: Drop) -> str:
    exists = _when(node.if_exists, "IF EXISTS")
    return _words("DROP", node.kind.value, exists, format_name(node.name), _when(node.delete_topic, "DELETE TOPIC"))


def _alter_source(node: AlterSource) -> str:
    added = [f"ADD COLUMN {_column(column)}" for column in node.columns]
    return f"ALTER {node.kind.value} {format_name(node.name)} {', '.join(added)}"


def _control(node: ControlQuery) -> str:
    return f"{node.action.value} {'ALL' if node.query_id is None else format_name(node.query_id)}"


def _describe(node: Describe) -> str:
    name = "" if node.name is None else format_name(node.name)
    return _words("DESCRIBE", node.what.value, name, _when(node.is_extended, "EXTENDED"))


def _explain(node: Explain) -> str:
    if isinstance(node.subject, Identifier):
        return f"EXPLAIN {format_name(node.subject)}"
    return f"EXPLAIN {_FORMATS[type(node.subject)](node.subject)}"


def _print(node: PrintTopic) -> str:
    return _words(
        "PRINT",
        format_string(node.topic),
        _when(node.from_beginning, "FROM BEGINNING"),
        "" if node.interval is None else f"INTERVAL {node.interval}",
        "" if node.limit is None else f"LIMIT {node.limit}",
    )


def _assert_topic(node: AssertTopic) -> str:
    exists = _when(not node.must_exist, "NOT EXISTS")
    return _words("ASSERT", exists, "TOPIC", format_string(node.topic), _with(node.properties), _timeout(node.timeout))


def _assert_schema(node: AssertSchema) -> str:
    return _words(
        "ASSERT",
        _when(not node.must_exist, "NOT EXISTS"),
        "SCHEMA",
        "" if node.subject is None else f"SUBJECT {format_string(node.subject)}",
        "" if node.schema_id is None else f"ID {node.schema_id}",
        _timeout(node.timeout),
    )


def _assert_values(node: AssertValues) -> str:
    return _words("ASSERT VALUES", format_name(node.source), _names(node.columns), "VALUES", _values(node.values))


def _assert_tombstone(node: AssertTombstone) -> str:
    return _words("ASSERT NULL VALUES", format_name(node.source), _names(node.columns), "KEY", _values(node.key))


def _assert_source(node: AssertSource) -> str:
    return _words("ASSERT", node.kind.value, format_name(node.name), _columns(node.columns), _with(node.properties))


_FORMATS: Final[dict[type[Any], Callable[[Any], str]]] = {
    Query: format_query,
    CreateSource: _create_source,
    CreateAsSelect: _create_as_select,
    CreateConnector: _create_connector,
    CreateType: _create_type,
    InsertSelect: _insert_select,
    InsertValues: _insert_values,
    Drop: _drop,
    AlterSource: _alter_source,
    AlterSystem: lambda node: f"ALTER SYSTEM {format_string(node.key)} = {format_string(node.value)}",
    ControlQuery: _control,
    SetProperty: lambda node: f"SET {format_string(node.key)} = {format_string(node.value)}",
    UnsetProperty: lambda node: f"UNSET {format_string(node.key)}",
    DefineVariable: lambda node: f"DEFINE {node.name} = {format_string(node.value)}",
    UndefineVariable: lambda node: f"UNDEFINE {node.name}",
    Show: lambda node: _words("SHOW", node.what.value, _when(node.is_extended, "EXTENDED")),
    Describe: _describe,
    Explain: _explain,
    PrintTopic: _print,
    AssertTopic: _assert_topic,
    AssertSchema: _assert_schema,
    AssertValues: _assert_values,
    AssertTombstone: _assert_tombstone,
    AssertSource: _assert_source,
    RunScript: lambda node: f"RUN SCRIPT {format_string(node.file)}",
    SparkStatement: lambda node: node.text,
}
"""A table rather than one long match. `Any`: each function takes the class that it stands beside."""
