"""Statements that look at, control or check what runs, and those of a session."""

from typing import Final

from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.parsing.definitions import parse_columns, parse_names, parse_properties, parse_values
from streams.sql.language.parsing.queries import parse_duration
from streams.sql.language.tokens import Kind
from streams.sql.language.tree.statements import (
    AssertSchema,
    AssertSource,
    AssertTombstone,
    AssertTopic,
    AssertValues,
    ControlQuery,
    DefineVariable,
    Describe,
    Described,
    PrintTopic,
    QueryAction,
    RunScript,
    SetProperty,
    Show,
    Shown,
    SourceKind,
    UndefineVariable,
    UnsetProperty,
)
from streams.sql.language.words import closest

_EXTENDABLE: Final = frozenset({Shown.TOPICS, Shown.ALL_TOPICS, Shown.STREAMS, Shown.TABLES, Shown.QUERIES})
_ASSERTED: Final = ("TOPIC", "SCHEMA", "STREAM", "TABLE", "VALUES", "NULL")


def parse_show(cursor: Cursor) -> Show:
    """SHOW ... or LIST ..."""
    verb = cursor.advance()
    for what in sorted(Shown, key=lambda item: -len(item.value)):
        if cursor.accept(*what.value.split()):
            is_extended = what in _EXTENDABLE and cursor.accept("EXTENDED")
            return Show(what, is_extended, place=cursor.place_from(verb.start))
    for first in ("ALL", "CONNECTOR", "SOURCE", "SINK"):
        if cursor.is_word(first):
            cursor.advance()
            raise cursor.unexpected(f"Expected {_after(first)} after {verb.value} {first}")
    meant = closest(cursor.token.value, [item.value for item in Shown])
    if meant is not None:
        raise cursor.unexpected(f"Expected what to list after {verb.value}", hint=f" Did you mean {meant}?")
    raise cursor.unexpected(f"Expected one of {', '.join(item.value for item in Shown)} after {verb.value}")


def _after(first: str) -> str:
    return {"ALL": "TOPICS", "CONNECTOR": "PLUGINS"}.get(first, "CONNECTORS")


def parse_describe(cursor: Cursor) -> Describe:
    """DESCRIBE ..."""
    start = cursor.advance().start
    for what in (Described.FUNCTION, Described.CONNECTOR):
        if cursor.is_word(what.value) and (cursor.is_name(ahead=1) or what is Described.CONNECTOR):
            cursor.advance()
            name = cursor.identifier(f"the {what.value.lower()}")
            return Describe(what, name, place=cursor.place_from(start))
    for what in (Described.STREAMS, Described.TABLES):
        if cursor.accept(what.value):
            return Describe(what, None, cursor.accept("EXTENDED"), place=cursor.place_from(start))
    if cursor.is_word("EXTENDED") and cursor.is_name(ahead=1):
        raise cursor.error_at(cursor.token, "EXTENDED comes after the name, as in DESCRIBE orders EXTENDED.")
    name = cursor.identifier("a stream or table")
    return Describe(Described.SOURCE, name, cursor.accept("EXTENDED"), place=cursor.place_from(start))


def parse_control(cursor: Cursor) -> ControlQuery:
    """TERMINATE, PAUSE or RESUME."""
    verb = cursor.advance()
    query_id = None if cursor.accept("ALL") else cursor.identifier("the query's id, or ALL")
    return ControlQuery(QueryAction(verb.value), query_id, place=cursor.place_from(verb.start))


def parse_set(cursor: Cursor) -> SetProperty:
    """SET 'key' = 'value'."""
    start = cursor.advance().start
    key = cursor.string("the property").value
    cursor.expect_symbol("=", where="after the property")
    value = cursor.string("its value").value
    return SetProperty(key, value, place=cursor.place_from(start))


def parse_unset(cursor: Cursor) -> UnsetProperty:
    """UNSET 'key'."""
    start = cursor.advance().start
    key = cursor.string("the property").value
    return UnsetProperty(key, place=cursor.place_from(start))


def parse_define(cursor: Cursor) -> DefineVariable:
    """DEFINE name = 'value'."""
    start = cursor.advance().start
    name = _variable(cursor)
    cursor.expect_symbol("=", where="after the variable")
    value = cursor.string("its value").value
    return DefineVariable(name, value, place=cursor.place_from(start))


def parse_undefine(cursor: Cursor) -> UndefineVariable:
    """UNDEFINE name."""
    start = cursor.advance().start
    return UndefineVariable(_variable(cursor), place=cursor.place_from(start))


def _variable(cursor: Cursor) -> str:
    """The name of a variable, in its case."""
    token = cursor.token
    if token.kind is not Kind.WORD:
        raise cursor.unexpected("Expected the name of a variable, without quotes")
    cursor.advance()
    return cursor.text[token.start : token.end]


def parse_print(cursor: Cursor) -> PrintTopic:
    """PRINT topic ..."""
    start = cursor.advance().start
    topic = _resource(cursor, "the topic")
    from_beginning = cursor.accept("FROM")
    if from_beginning:
        cursor.expect("BEGINNING", where="after FROM")
    interval = cursor.whole_number("the interval") if cursor.accept_one(("INTERVAL", "SAMPLE")) else None
    limit = cursor.whole_number("the limit") if cursor.accept("LIMIT") else None
    return PrintTopic(topic, from_beginning, interval, limit, place=cursor.place_from(start))


def _resource(cursor: Cursor, what: str) -> str:
    """The name of something outside of SQL, which keeps its case."""
    token = cursor.token
    if token.kind is Kind.STRING:
        cursor.advance()
        return token.value
    name = cursor.identifier(what)
    return name.name if token.kind is Kind.NAME else cursor.text[token.start : token.end]


def parse_assert(
    cursor: Cursor,
) -> AssertTopic | AssertSchema | AssertValues | AssertTombstone | AssertSource:
    """ASSERT ..."""
    start = cursor.advance().start
    must_exist = not cursor.is_word("NOT")
    if not must_exist:
        cursor.advance()
        cursor.expect("EXISTS", where="after NOT")
    what = cursor.expect_one(_ASSERTED[:2] if not must_exist else _ASSERTED, where="in ASSERT")
    match what:
        case "TOPIC":
            return _topic(cursor, start, must_exist=must_exist)
        case "SCHEMA":
            return _schema(cursor, start, must_exist=must_exist)
        case "STREAM" | "TABLE":
            return _source(cursor, SourceKind(what), start)
        case "VALUES":
            source = cursor.identifier("a stream or table")
            columns = parse_names(cursor) if cursor.is_symbol("(") else ()
            cursor.expect("VALUES", where="and a row")
            return AssertValues(source, columns, parse_values(cursor), place=cursor.place_from(start))
        case _:
            cursor.expect("VALUES", where="after NULL")
            source = cursor.identifier("a table")
            columns = parse_names(cursor) if cursor.is_symbol("(") else ()
            cursor.expect("KEY", where="and the values of the key")
            return AssertTombstone(source, columns, parse_values(cursor), place=cursor.place_from(start))


def _topic(cursor: Cursor, start: int, *, must_exist: bool) -> AssertTopic:
    topic = _resource(cursor, "the topic")
    properties = parse_properties(cursor) if cursor.accept("WITH") else ()
    timeout = parse_duration(cursor, "the timeout") if cursor.accept("TIMEOUT") else None
    return AssertTopic(topic, properties, timeout, must_exist, place=cursor.place_from(start))


def _schema(cursor: Cursor, start: int, *, must_exist: bool) -> AssertSchema:
    subject = _resource(cursor, "the subject") if cursor.accept("SUBJECT") else None
    schema_id = cursor.whole_number("the schema's id") if cursor.accept("ID") else None
    if subject is None and schema_id is None:
        raise cursor.unexpected("Expected SUBJECT and a name, or ID and a number, after SCHEMA")
    timeout = parse_duration(cursor, "the timeout") if cursor.accept("TIMEOUT") else None
    return AssertSchema(subject, schema_id, timeout, must_exist, place=cursor.place_from(start))


def _source(cursor: Cursor, kind: SourceKind, start: int) -> AssertSource:
    name = cursor.identifier(f"the {kind.value.lower()}")
    columns = parse_columns(cursor) if cursor.is_symbol("(") else ()
    properties = parse_properties(cursor) if cursor.accept("WITH") else ()
    return AssertSource(kind, name, columns, properties, place=cursor.place_from(start))


def parse_run_script(cursor: Cursor) -> RunScript:
    """RUN SCRIPT 'file'."""
    start = cursor.advance().start
    cursor.expect("SCRIPT", where="after RUN")
    file = cursor.string("the file").value
    return RunScript(file, place=cursor.place_from(start))
