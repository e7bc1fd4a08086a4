"""Queries: which clauses need or exclude each other, windows, joins, names."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from streams.sql.language.checks.expressions import AGGREGATES, TABLE_FUNCTIONS, calls_of
from streams.sql.language.checks.names import PSEUDO_COLUMNS, WINDOW_BOUNDS
from streams.sql.language.checks.problem import Problem, at
from streams.sql.language.source import Place
from streams.sql.language.tree.expressions import Case, ColumnReference, Comparison, FunctionCall, NullLiteral
from streams.sql.language.tree.node import Identifier, Node, children, walk
from streams.sql.language.tree.queries import (
    Duration,
    Emit,
    HoppingWindow,
    Query,
    SelectAll,
    SelectExpression,
    SessionWindow,
    Window,
)
from streams.sql.language.words import closest, listed

_DAY_MS: Final = 86_400_000


class Purpose(Enum):
    """What a query is for."""

    PULL = auto()
    PUSH = auto()
    STORED = auto()  # CREATE ... AS, INSERT INTO ... SELECT


def purpose_of(query: Query) -> Purpose:
    """What a SELECT on its own is for."""
    return Purpose.PULL if query.emit is None else Purpose.PUSH


def check_query(query: Query, purpose: Purpose) -> Iterator[Problem]:
    """Everything about a query but its single expressions."""
    yield from _clauses(query, purpose)
    yield from _limit(query, purpose)
    if query.window is not None:
        yield from _window(query.window)
    yield from _joins(query)
    yield from _source_names(query)
    yield from _aggregates(query, purpose)
    yield from _table_functions(query)
    yield from _window_bounds(query)
    yield from _projection(query, purpose)


def _clauses(query: Query, purpose: Purpose) -> Iterator[Problem]:
    if query.window is not None and not query.group_by:
        yield at(query.window, "WINDOW clause requires a GROUP BY clause: add GROUP BY after it.")
    if query.emit is Emit.FINAL and query.window is None:
        yield at(query.source, "EMIT FINAL needs a WINDOW, whose end it waits for. Add one, or write EMIT CHANGES.")
    if query.having is not None and not query.group_by:
        yield at(query.having, "HAVING needs a GROUP BY. To choose single rows, write WHERE.")
    if query.partition_by and query.group_by:
        yield at(query.partition_by[0], "PARTITION BY cannot follow GROUP BY, which sets the key itself. Remove it.")
    for expression in query.partition_by:
        if isinstance(expression, NullLiteral) and len(query.partition_by) > 1:
            yield at(
                expression,
                "PARTITION BY NULL removes the key, so nothing can be listed with it. Remove NULL or the others.",
            )
    if purpose is Purpose.PULL:
        yield from _only_in_push(query)


def _only_in_push(query: Query) -> Iterator[Problem]:
    end = "Write EMIT CHANGES at the end."
    if query.window is not None:
        yield at(query.window, f"WINDOW is for queries that go on. {end}")
    if query.partition_by:
        yield at(query.partition_by[0], f"PARTITION BY is for queries that go on. {end}")
    for join in query.joins:
        if join.within is not None:
            yield at(join.within, f"WITHIN is for queries that go on. {end}")


def _limit(query: Query, purpose: Purpose) -> Iterator[Problem]:
    if query.limit is None:
        return
    if purpose is Purpose.STORED:
        yield at(query.limit, "LIMIT is only for a SELECT that returns rows: a stored result has no end. Remove LIMIT.")
    elif query.limit.value < 0:
        yield at(query.limit, f"LIMIT is 0 or more, not {query.limit.value}.")


def _window(window: Window) -> Iterator[Problem]:
    size = window.gap if isinstance(window, SessionWindow) else window.size
    name = "The gap of a session" if isinstance(window, SessionWindow) else "The size of a window"
    if size.amount <= 0:
        yield at(size, f"{name} is longer than 0.")
        return
    if isinstance(window, HoppingWindow):
        if window.advance.amount <= 0:
            yield at(window.advance, "The advance of a window is longer than 0.")
        elif window.advance.ms > size.ms:
            yield at(
                window.advance,
                "The advance is longer than the window, so that records between two windows would be lost.",
            )
    yield from _not_negative(window.grace, "The grace period")
    grace_ms = 0 if window.grace is None else window.grace.ms
    if window.retention is not None and window.retention.ms < size.ms + grace_ms:
        yield at(
            window.retention, "RETENTION is at least the size of the window plus its GRACE PERIOD. Make it longer."
        )


def _not_negative(duration: Duration | None, name: str) -> Iterator[Problem]:
    if duration is not None and duration.amount < 0:
        yield at(duration, f"{name} is 0 or longer.")


def _joins(query: Query) -> Iterator[Problem]:
    for join in query.joins:
        if not isinstance(join.condition, Comparison) or join.condition.operator != "=":
            example = f"{query.source.known_as}.ID = {join.source.known_as}.ID"
            yield at(
                join.condition,
                f"ON is one equality of a column on each side, as in {example}. Put other conditions in WHERE.",
            )
        if join.within is not None:
            yield from _not_negative(join.within.before, "The time of WITHIN")
            if join.within.after.place != join.within.before.place:
                yield from _not_negative(join.within.after, "The time of WITHIN")
            yield from _not_negative(join.within.grace, "The grace period")


def _source_names(query: Query) -> Iterator[Problem]:
    known: set[str] = set()
    for source in query.sources:
        name = source.known_as
        if name in known:
            yield at(source, f"{name} is in this query twice. Give one of the two another name with AS.")
        known.add(name)
    for node in walk(query):
        if isinstance(node, ColumnReference | SelectAll) and node.source is not None and node.source.name not in known:
            yield at(node.source, _unknown_source(node.source, known))


def _unknown_source(name: Identifier, known: set[str]) -> str:
    meant = closest(name.name, known)
    hint = (
        f" Did you mean {meant}?"
        if meant
        else f" It reads {listed(sorted(known)[:10], last='and')}. For a field of a STRUCT, write ->."
    )
    return f"{name.name} is not a stream or table of this query.{hint}"


def _aggregates(query: Query, purpose: Purpose) -> Iterator[Problem]:
    for clause, name, advice in (
        (query.where, "WHERE", "Write the condition in HAVING."),
        *((expression, "GROUP BY", "Group by columns.") for expression in query.group_by),
        *((expression, "PARTITION BY", "Aggregate into a table first.") for expression in query.partition_by),
        *((join.condition, "ON", "Aggregate into a table first.") for join in query.joins),
    ):
        for call in [] if clause is None else calls_of(clause, AGGREGATES):
            yield at(call, f"{call.name.name} is an aggregate, which {name} cannot use. {advice}")
    calls = [call for item in query.items for call in calls_of(item, AGGREGATES)]
    for call in calls:
        inner = [found for child in children(call) for found in calls_of(child, AGGREGATES)]
        if inner:
            yield at(
                inner[0],
                f"Aggregates cannot be nested: {inner[0].name.name} is inside {call.name.name}. Use two statements.",
            )
    if calls and not query.group_by and query.window is None and purpose is not Purpose.PULL:
        yield at(calls[0], f"{calls[0].name.name} needs a GROUP BY. For one group of all rows, write GROUP BY 'all'.")


def _table_functions(query: Query) -> Iterator[Problem]:
    has_aggregates = bool(query.group_by) or any(calls_of(item, AGGREGATES) for item in query.items)
    elsewhere: list[Node] = [*query.group_by, *query.partition_by]
    elsewhere += [clause for clause in (query.where, query.having) if clause is not None]
    for clause in elsewhere:
        for call in calls_of(clause, TABLE_FUNCTIONS):
            yield at(call, f"{call.name.name} makes several rows of one, and can be used in SELECT only.")
    for item in query.items:
        yield from _table_functions_of_item(item, has_aggregates=has_aggregates)


def _table_functions_of_item(item: Node, *, has_aggregates: bool) -> Iterator[Problem]:
    pending = [(item, False)]
    while pending:
        node, is_inside = pending.pop()
        is_call = isinstance(node, FunctionCall) and node.name.name.upper() in TABLE_FUNCTIONS
        if is_call and has_aggregates:
            yield at(node, "EXPLODE cannot be combined with aggregates. Use two statements.")
        elif is_call and is_inside:
            yield at(node, "EXPLODE cannot be inside CASE or another EXPLODE. Use two statements.")
        is_inside = is_inside or is_call or isinstance(node, Case)
        pending.extend((child, is_inside) for child in children(node))


def _window_bounds(query: Query) -> Iterator[Problem]:
    if query.window is None:
        return
    clauses: list[tuple[Node | None, str]] = [(query.where, "WHERE"), (query.having, "HAVING")]
    clauses += [(expression, "GROUP BY") for expression in query.group_by]
    for clause, name in clauses:
        for node in [] if clause is None else walk(clause):
            if isinstance(node, ColumnReference) and node.name.name in WINDOW_BOUNDS:
                message = (
                    f"{node.name.name} is known in SELECT only, not in {name}. Store the result as a table, "
                    "and query that."
                )
                yield at(node, message)


def _projection(query: Query, purpose: Purpose) -> Iterator[Problem]:
    for item in query.items:
        if isinstance(item, SelectExpression) and isinstance(item.expression, NullLiteral):
            yield at(item.expression, "NULL by itself has no type. Write CAST(NULL AS type).")
    if purpose is Purpose.STORED:
        yield from _stored_names(query)


def _stored_names(query: Query) -> Iterator[Problem]:
    seen: dict[str, Place] = {}
    for item in query.items:
        if not isinstance(item, SelectExpression):
            continue
        name = _name_of(item)
        if name is None:
            continue
        if name in PSEUDO_COLUMNS:
            what = "cannot be the name of a stored column" if item.alias else "needs another name to be stored"
            yield at(item.alias or item, f"{name} {what}: write AS and a name.")
        elif name in seen and not query.joins:
            yield at(item, f"Column {name} is selected twice. Give one of the two another name with AS.")
        seen[name] = item.place


def _name_of(item: SelectExpression) -> str | None:
    if item.alias is not None:
        return item.alias.name
    return item.expression.name.name if isinstance(item.expression, ColumnReference) else None
