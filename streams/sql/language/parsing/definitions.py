"""CREATE, ALTER, DROP, INSERT: statements that define or fill streams, tables, types and connectors."""

from typing import Final

from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.parsing.expressions import parse_expression, parse_literal
from streams.sql.language.parsing.queries import parse_query
from streams.sql.language.parsing.types import parse_type
from streams.sql.language.tokens import Kind
from streams.sql.language.tree.expressions import Expression
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.statements import (
    AlterSource,
    AlterSystem,
    Column,
    ColumnRole,
    ConnectorKind,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    Drop,
    DroppedKind,
    InsertSelect,
    InsertValues,
    Property,
    SourceKind,
)

_KINDS: Final = ("STREAM", "TABLE")


def parse_create(cursor: Cursor) -> CreateSource | CreateAsSelect | CreateConnector | CreateType:
    """CREATE ..."""
    start = cursor.advance().start
    or_replace = cursor.accept("OR", "REPLACE")
    if cursor.is_word("OR"):
        cursor.advance()
        cursor.expect("REPLACE", where="after CREATE OR")
    direction = cursor.accept_one(("SOURCE", "SINK"))
    if direction is not None and cursor.accept("CONNECTOR"):
        return _connector(cursor, ConnectorKind(direction), start)
    if direction == "SINK":
        raise cursor.unexpected("Expected CONNECTOR after SINK")
    if cursor.is_word("CONNECTOR"):
        raise cursor.error_at(cursor.token, "Write CREATE SOURCE CONNECTOR or CREATE SINK CONNECTOR.")
    if direction is None and not or_replace and cursor.accept("TYPE"):
        return _type(cursor, start)
    kind = SourceKind(
        cursor.expect_one(_KINDS, where="after CREATE" if direction is None else "or CONNECTOR after SOURCE")
    )
    return _source(cursor, kind, start=start, or_replace=or_replace, is_source=direction is not None)


def _source(
    cursor: Cursor, kind: SourceKind, *, start: int, or_replace: bool, is_source: bool
) -> CreateSource | CreateAsSelect:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier(f"the {kind.value.lower()}")
    columns_at = cursor.token
    columns = parse_columns(cursor) if cursor.is_symbol("(") else ()
    cursor.tried("(")
    properties = parse_properties(cursor) if cursor.accept("WITH") else ()
    if not cursor.accept("AS"):
        place = cursor.place_from(start)
        return CreateSource(kind, name, columns, properties, or_replace, if_not_exists, is_source, place=place)
    if columns:
        message = (
            "The columns of CREATE ... AS come from its SELECT. Remove the list, and name them with AS in the SELECT."
        )
        raise cursor.error_at(columns_at, message)
    if is_source:
        message = (
            f"SOURCE is for topics that others fill. Remove it, or the AS with its SELECT: CREATE {kind.value} ... AS."
        )
        raise cursor.error_at(cursor.tokens[cursor.index - 1], message)
    if not cursor.is_word("SELECT"):
        raise cursor.unexpected("Expected SELECT after AS")
    query = parse_query(cursor)
    place = cursor.place_from(start)
    return CreateAsSelect(kind, name, query, properties, or_replace, if_not_exists, place=place)


def _if_not_exists(cursor: Cursor) -> bool:
    if not _accept_if(cursor):
        return False
    cursor.expect("NOT", "EXISTS", where="as in IF NOT EXISTS")
    return True


def _if_exists(cursor: Cursor) -> bool:
    if not _accept_if(cursor):
        return False
    cursor.expect("EXISTS", where="after IF")
    return True


def _accept_if(cursor: Cursor) -> bool:
    """Take IF, unless it is a name."""
    following = cursor.ahead(1)
    if cursor.is_word("IF") and following.kind is Kind.WORD and following.value not in {"AS", "WITH", "DELETE"}:
        cursor.advance()
        return True
    cursor.tried("IF")
    return False


def parse_columns(cursor: Cursor) -> tuple[Column, ...]:
    """(name type [role], ...)."""
    cursor.expect_symbol("(", where="before the columns")
    columns = [_column(cursor)]
    while cursor.accept_symbol(","):
        columns.append(_column(cursor))
    cursor.expect_symbol(")", where="after the columns")
    return tuple(columns)


def _column(cursor: Cursor) -> Column:
    start = cursor.token.start
    if cursor.is_word("PRIMARY", "KEY") and cursor.is_symbol("(", ahead=2):
        raise cursor.error_at(cursor.token, "Write PRIMARY KEY after each key column, as in ID STRING PRIMARY KEY.")
    name = cursor.identifier("a column")
    if cursor.is_symbol(",") or cursor.is_symbol(")"):
        raise cursor.unexpected(f"Expected the type of column {name.name}")
    type_ = parse_type(cursor)
    header = None
    role = ColumnRole.VALUE
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY", where="after PRIMARY")
        role = ColumnRole.PRIMARY_KEY
    elif cursor.accept("KEY"):
        role = ColumnRole.KEY
    elif cursor.accept("HEADERS"):
        role = ColumnRole.HEADERS
    elif cursor.accept("HEADER"):
        role = ColumnRole.HEADER
        cursor.expect_symbol("(", where="after HEADER, as in HEADER('key')")
        header = cursor.string("the key of the header").value
        cursor.expect_symbol(")", where="after the key of the header")
    _refuse_constraints(cursor)
    return Column(name, type_, role, header, place=cursor.place_from(start))


def _refuse_constraints(cursor: Cursor) -> None:
    if cursor.is_word("NOT", "NULL") or cursor.is_word("NULL") or cursor.is_word("DEFAULT") or cursor.is_word("UNIQUE"):
        message = (
            "Columns have no constraints: any of them may be NULL. Only KEY, PRIMARY KEY, HEADERS and HEADER('key') "
            "follow a type."
        )
        raise cursor.error_at(cursor.token, message)


def parse_properties(cursor: Cursor, *, keep_case: bool = False) -> tuple[Property, ...]:
    """(name = value, ...); the names of connectors' properties keep their case."""
    cursor.expect_symbol("(", where="after WITH")
    properties = [_property(cursor, keep_case=keep_case)]
    while cursor.accept_symbol(","):
        properties.append(_property(cursor, keep_case=keep_case))
    cursor.expect_symbol(")", where="after the properties")
    return tuple(properties)


def _property(cursor: Cursor, *, keep_case: bool) -> Property:
    token = cursor.token
    if token.kind is Kind.STRING:
        cursor.advance()
        name = token.value
    elif token.kind is Kind.NAME or not keep_case:
        name = cursor.identifier("a property").name
    else:
        name = cursor.text[token.start : token.end]
        cursor.identifier("a property")
    if cursor.is_symbol("."):
        raise cursor.error_at(
            token, "Put the name of a property that contains dots in quotes, as in 'connector.class'."
        )
    cursor.expect_symbol("=", where=f"after {name}")
    value = parse_literal(cursor, f"the value of {name}")
    shown = name if keep_case else name.upper()
    return Property(shown, value, place=cursor.place_from(token.start))


def _connector(cursor: Cursor, kind: ConnectorKind, start: int) -> CreateConnector:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier("the connector")
    cursor.expect("WITH", where="and the connector's configuration")
    properties = parse_properties(cursor, keep_case=True)
    return CreateConnector(kind, name, properties, if_not_exists, place=cursor.place_from(start))


def _type(cursor: Cursor, start: int) -> CreateType:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.identifier("the type")
    cursor.expect("AS", where="after the name of the type")
    type_ = parse_type(cursor)
    return CreateType(name, type_, if_not_exists, place=cursor.place_from(start))


def parse_drop(cursor: Cursor) -> Drop:
    """DROP ..."""
    start = cursor.advance().start
    kind = DroppedKind(cursor.expect_one([item.value for item in DroppedKind], where="after DROP"))
    if_exists = _if_exists(cursor)
    name = cursor.identifier(f"the {kind.value.lower()}")
    has_topic = kind in {DroppedKind.STREAM, DroppedKind.TABLE}
    delete_topic = False
    if has_topic and cursor.accept("DELETE"):
        cursor.expect("TOPIC", where="after DELETE")
        delete_topic = True
    return Drop(kind, name, if_exists, delete_topic, place=cursor.place_from(start))


def parse_alter(cursor: Cursor) -> AlterSource | AlterSystem:
    """ALTER ..."""
    start = cursor.advance().start
    if cursor.accept("SYSTEM"):
        key = cursor.string("the property").value
        cursor.expect_symbol("=", where="after the property")
        value = cursor.string("its value").value
        return AlterSystem(key, value, place=cursor.place_from(start))
    kind = SourceKind(cursor.expect_one(_KINDS, where="or SYSTEM after ALTER"))
    name = cursor.identifier(f"the {kind.value.lower()}")
    columns = [_added_column(cursor)]
    while cursor.accept_symbol(","):
        columns.append(_added_column(cursor))
    return AlterSource(kind, name, tuple(columns), place=cursor.place_from(start))


def _added_column(cursor: Cursor) -> Column:
    if cursor.is_word("DROP") or cursor.is_word("RENAME") or cursor.is_word("ALTER") or cursor.is_word("MODIFY"):
        message = "Columns can only be added: ADD COLUMN name type. For other changes, use CREATE OR REPLACE."
        raise cursor.error_at(cursor.token, message)
    cursor.expect("ADD", where="COLUMN")
    if not _is_column_called_column(cursor):
        cursor.accept("COLUMN")
    start = cursor.token.start
    name = cursor.identifier("the column")
    return Column(name, parse_type(cursor), place=cursor.place_from(start))


def _is_column_called_column(cursor: Cursor) -> bool:
    return cursor.is_word("COLUMN") and (cursor.ahead(2).kind is Kind.END or cursor.is_symbol(",", ahead=2))


def parse_insert(cursor: Cursor) -> InsertSelect | InsertValues:
    """INSERT INTO ..."""
    start = cursor.advance().start
    cursor.expect("INTO", where="after INSERT")
    target = cursor.identifier("the stream or table")
    if cursor.is_word("WITH") or cursor.is_word("SELECT"):
        properties = parse_properties(cursor) if cursor.accept("WITH") else ()
        if not cursor.is_word("SELECT"):
            raise cursor.unexpected("Expected SELECT after the properties")
        return InsertSelect(target, parse_query(cursor), properties, place=cursor.place_from(start))
    columns = parse_names(cursor) if cursor.is_symbol("(") else ()
    cursor.tried("SELECT")
    cursor.expect("VALUES", where="and a row, or a SELECT")
    values = parse_values(cursor)
    if cursor.is_symbol(","):
        raise cursor.error_at(cursor.token, "INSERT INTO ... VALUES inserts one row. Write a statement for each row.")
    return InsertValues(target, columns, values, place=cursor.place_from(start))


def parse_names(cursor: Cursor) -> tuple[Identifier, ...]:
    """(name, ...)."""
    cursor.expect_symbol("(", where="before the columns")
    names = [cursor.identifier("a column")]
    while cursor.accept_symbol(","):
        names.append(cursor.identifier("a column"))
    cursor.expect_symbol(")", where="after the columns")
    return tuple(names)


def parse_values(cursor: Cursor) -> tuple[Expression, ...]:
    """(expression, ...)."""
    cursor.expect_symbol("(", where="before the values")
    values: list[Expression] = []
    while not (not values and cursor.is_symbol(")")):
        values.append(parse_expression(cursor))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")", where="after the values")
    return tuple(values)
