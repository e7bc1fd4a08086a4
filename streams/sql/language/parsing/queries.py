"""SELECT and its clauses, which have a fixed order."""

from typing import Final

from streams.sql.language.parsing.cursor import Cursor
from streams.sql.language.parsing.expressions import parse_expression, parse_value
from streams.sql.language.source import Place
from streams.sql.language.tokens import Kind
from streams.sql.language.tree.expressions import Expression, IntegerLiteral
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import (
    UNITS,
    Duration,
    Emit,
    HoppingWindow,
    Join,
    JoinKind,
    Query,
    QuerySource,
    SelectAll,
    SelectExpression,
    SelectFields,
    SelectItem,
    SessionWindow,
    TumblingWindow,
    Window,
    Within,
)

_CLAUSES: Final = ("WINDOW", "WHERE", "GROUP", "PARTITION", "HAVING", "EMIT", "LIMIT")
_NO_ALIAS: Final = frozenset({"EMIT", "PARTITION", "GRACE"})
"""Words that could be names, but begin a clause where an alias could stand."""
_EXPECTED_UNITS: Final = "a unit of time (MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS)"


def parse_query(cursor: Cursor) -> Query:
    """SELECT ... FROM ..., and what may follow."""
    start = cursor.token.start
    cursor.expect("SELECT")
    _refuse_distinct(cursor)
    items = [_select_item(cursor)]
    while cursor.accept_symbol(","):
        items.append(_select_item(cursor))
    cursor.expect("FROM", where="after the columns")
    source = _source(cursor)
    joins = []
    while (kind := _join_kind(cursor)) is not None:
        joins.append(_join(cursor, *kind))
    window = _window(cursor) if cursor.accept("WINDOW") else None
    where = parse_expression(cursor) if cursor.accept("WHERE") else None
    group_by = _grouping(cursor) if _accept_by(cursor, "GROUP") else ()
    partition_by = _grouping(cursor) if _accept_by(cursor, "PARTITION") else ()
    having = parse_expression(cursor) if cursor.accept("HAVING") else None
    emit = Emit(cursor.expect_one(("CHANGES", "FINAL"), where="after EMIT")) if cursor.accept("EMIT") else None
    limit = _limit(cursor) if cursor.accept("LIMIT") else None
    _refuse_late_clause(cursor)
    return Query(
        tuple(items),
        source,
        tuple(joins),
        window,
        where,
        group_by,
        partition_by,
        having,
        emit,
        limit,
        place=cursor.place_from(start),
    )


def _limit(cursor: Cursor) -> IntegerLiteral:
    start = cursor.token.start
    number = cursor.whole_number("the limit")
    return IntegerLiteral(number, place=cursor.place_from(start))


def _refuse_distinct(cursor: Cursor) -> None:
    if cursor.is_word("DISTINCT"):
        message = "SELECT DISTINCT is not supported in a query over topics. Use GROUP BY with COUNT(*), into a table."
        raise cursor.error_at(cursor.token, message)


def _refuse_late_clause(cursor: Cursor) -> None:
    token = cursor.token
    if (
        token.kind is Kind.WORD
        and token.value in _CLAUSES
        and (token.value != "PARTITION" or cursor.is_word("PARTITION", "BY"))
    ):
        raise cursor.error_at(
            token,
            f"{token.value} is in the wrong place or appears twice. The order is FROM, JOIN, WINDOW, WHERE, GROUP BY, "
            "PARTITION BY, HAVING, EMIT, LIMIT.",
        )


def _accept_by(cursor: Cursor, word: str) -> bool:
    if not cursor.accept(word):
        return False
    cursor.expect("BY", where=f"after {word}")
    return True


def _select_item(cursor: Cursor) -> SelectItem:
    start = cursor.token.start
    if cursor.is_symbol("*"):
        cursor.advance()
        return SelectAll(place=cursor.place_from(start))
    if cursor.is_name() and cursor.is_symbol(".", ahead=1) and cursor.is_symbol("*", ahead=2):
        source = cursor.identifier("a stream or table")
        cursor.advance()
        cursor.advance()
        return SelectAll(source, place=cursor.place_from(start))
    expression = parse_expression(cursor)
    if cursor.is_symbol("->") and cursor.is_symbol("*", ahead=1):
        cursor.advance()
        cursor.advance()
        return SelectFields(expression, place=cursor.place_from(start))
    return SelectExpression(expression, _alias(cursor, "the column"), place=cursor.place_from(start))


def _alias(cursor: Cursor, what: str) -> Identifier | None:
    if cursor.accept("AS"):
        return cursor.identifier(what)
    token = cursor.token
    if not cursor.is_name() or (token.kind is Kind.WORD and token.value in _NO_ALIAS):
        return None
    found = cursor.identifier(what)
    if token.kind is Kind.WORD:
        cursor.bare_alias = token
    return found


def _source(cursor: Cursor) -> QuerySource:
    start = cursor.token.start
    if cursor.is_symbol("("):
        message = (
            "A query over topics reads streams and tables only. Give the inner SELECT a name with CREATE STREAM ... AS."
        )
        raise cursor.error_at(cursor.token, message)
    name = cursor.identifier("a stream or table")
    alias = _alias(cursor, "the stream or table")
    if cursor.is_symbol(","):
        raise cursor.error_at(cursor.token, "Write JOIN ... ON ... instead of a comma between streams or tables.")
    return QuerySource(name, alias, place=cursor.place_from(start))


def _join_kind(cursor: Cursor) -> tuple[JoinKind, int] | None:
    """The kind of the join that begins here, and where; INNER need not be written."""
    start = cursor.token.start
    if cursor.accept("JOIN"):
        return JoinKind.INNER, start
    for kind in JoinKind:
        if cursor.accept(kind.value):
            if kind is not JoinKind.INNER:
                cursor.accept("OUTER")
            cursor.expect("JOIN", where=f"after {kind.value}")
            return kind, start
    return None


def _join(cursor: Cursor, kind: JoinKind, start: int) -> Join:
    source = _source(cursor)
    within = _within(cursor) if cursor.accept("WITHIN") else None
    cursor.expect("ON", where="and a condition after the joined stream or table")
    condition = parse_expression(cursor)
    return Join(kind, source, condition, within, place=cursor.place_from(start))


def _within(cursor: Cursor) -> Within:
    start = cursor.token.start
    if cursor.accept_symbol("("):
        before = parse_duration(cursor, "the time before")
        cursor.expect_symbol(",", where="after the time before, as in WITHIN (1 HOUR, 5 MINUTES)")
        after = parse_duration(cursor, "the time after")
        cursor.expect_symbol(")", where="after the time after")
    else:
        before = after = parse_duration(cursor, "the time between two records")
    grace = _grace(cursor) if cursor.accept("GRACE") else None
    return Within(before, after, grace, place=cursor.place_from(start))


def _grace(cursor: Cursor) -> Duration:
    cursor.expect("PERIOD", where="after GRACE")
    return parse_duration(cursor, "the grace period")


def parse_duration(cursor: Cursor, what: str) -> Duration:
    """A whole number and a unit."""
    start = cursor.token.start
    amount = cursor.whole_number(what)
    token = cursor.token
    unit = UNITS.get(token.value) if token.kind is Kind.WORD else None
    if unit is None:
        for name in UNITS:
            cursor.tried(name)
        raise cursor.unexpected(f"Expected {_EXPECTED_UNITS}")
    cursor.advance()
    return Duration(amount, unit, place=cursor.place_from(start))


def _window(cursor: Cursor) -> Window:
    start = cursor.tokens[cursor.index - 1].start
    kind = cursor.expect_one(("TUMBLING", "HOPPING", "SESSION"), where="after WINDOW")
    cursor.expect_symbol("(", where=f"after {kind}, as in {_EXAMPLES[kind]}")
    if kind != "SESSION":
        cursor.expect("SIZE", where=f"as in {_EXAMPLES[kind]}")
    size = parse_duration(cursor, "the inactivity gap" if kind == "SESSION" else "the size")
    advance = size
    if kind == "HOPPING":
        cursor.expect_symbol(",", where=f"after the size, as in {_EXAMPLES[kind]}")
        cursor.expect("ADVANCE", "BY", where=f"as in {_EXAMPLES[kind]}")
        advance = parse_duration(cursor, "the advance")
    retention, grace = _window_limits(cursor)
    cursor.expect_symbol(")", where="to close the window")
    place: Place = cursor.place_from(start)
    match kind:
        case "TUMBLING":
            return TumblingWindow(size, retention, grace, place=place)
        case "HOPPING":
            return HoppingWindow(size, advance, retention, grace, place=place)
        case _:
            return SessionWindow(size, retention, grace, place=place)


_EXAMPLES: Final = {
    "TUMBLING": "TUMBLING (SIZE 1 HOUR)",
    "HOPPING": "HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES)",
    "SESSION": "SESSION (5 MINUTES)",
}


def _window_limits(cursor: Cursor) -> tuple[Duration | None, Duration | None]:
    """RETENTION and GRACE PERIOD, each after a comma."""
    if not cursor.accept_symbol(","):
        return None, None
    retention = None
    if cursor.accept("RETENTION"):
        retention = parse_duration(cursor, "the retention")
        if not cursor.accept_symbol(","):
            return retention, None
    cursor.expect("GRACE", where="PERIOD after the comma" if retention else "PERIOD or RETENTION after the comma")
    grace = _grace(cursor)
    if cursor.is_symbol(",") and cursor.ahead(1).value == "RETENTION":
        raise cursor.error_at(cursor.ahead(1), "RETENTION comes before GRACE PERIOD.")
    return retention, grace


def _grouping(cursor: Cursor) -> tuple[Expression, ...]:
    """Expressions, which may all be in one pair of parentheses."""
    if cursor.is_symbol("(") and _is_closed_at_end_of_clause(cursor):
        cursor.advance()
        found = _value_list(cursor)
        cursor.expect_symbol(")", where="after the expressions")
        return found
    return _value_list(cursor)


def _is_closed_at_end_of_clause(cursor: Cursor) -> bool:
    """Whether the parenthesis that opens here holds several expressions: (a, b), not (a + b) * 2."""
    depth = 0
    for token in cursor.tokens[cursor.index :]:
        if token.kind is Kind.SYMBOL and token.value in "([":
            depth += 1
        elif token.kind is Kind.SYMBOL and token.value in ")]":
            depth -= 1
            if depth == 0:
                return False
        elif depth == 1 and token.kind is Kind.SYMBOL and token.value == ",":
            return True
    return False


def _value_list(cursor: Cursor) -> tuple[Expression, ...]:
    found = [parse_value(cursor)]
    while cursor.accept_symbol(","):
        found.append(parse_value(cursor))
    return tuple(found)
