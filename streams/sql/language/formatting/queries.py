"""SELECT, a line for each clause."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from streams.sql.language.formatting.expressions import Level, format_expression
from streams.sql.language.formatting.types import format_name
from streams.sql.language.tree.expressions import Expression
from streams.sql.language.tree.queries import (
    Duration,
    HoppingWindow,
    Join,
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


def format_query(query: Query) -> str:
    """A SELECT."""
    return "\n".join(_clauses(query))


def _clauses(query: Query) -> Iterator[str]:
    yield "SELECT " + ",\n  ".join([_item(item) for item in query.items])
    yield f"FROM {_source(query.source)}"
    for join in query.joins:
        yield _join(join)
    if query.window is not None:
        yield f"WINDOW {_window(query.window)}"
    if query.where is not None:
        yield f"WHERE {format_expression(query.where)}"
    if query.group_by:
        yield f"GROUP BY {_values(query.group_by)}"
    if query.partition_by:
        yield f"PARTITION BY {_values(query.partition_by)}"
    if query.having is not None:
        yield f"HAVING {format_expression(query.having)}"
    if query.emit is not None:
        yield f"EMIT {query.emit.value}"
    if query.limit is not None:
        yield f"LIMIT {query.limit.value}"


def _item(item: SelectItem) -> str:
    match item:
        case SelectAll(source):
            return "*" if source is None else f"{format_name(source)}.*"
        case SelectFields(struct):
            return f"{format_expression(struct, Level.PRIMARY)}->*"
        case SelectExpression(expression, alias):
            return format_expression(expression) + ("" if alias is None else f" AS {format_name(alias)}")
        case _:
            assert_never(item)


def _source(source: QuerySource) -> str:
    return format_name(source.name) + ("" if source.alias is None else f" AS {format_name(source.alias)}")


def _join(join: Join) -> str:
    within = "" if join.within is None else f" {_within(join.within)}"
    return f"{join.kind.value} JOIN {_source(join.source)}{within} ON {format_expression(join.condition)}"


def _within(within: Within) -> str:
    before, after = format_duration(within.before), format_duration(within.after)
    size = before if within.before == within.after else f"({before}, {after})"
    grace = "" if within.grace is None else f" GRACE PERIOD {format_duration(within.grace)}"
    return f"WITHIN {size}{grace}"


def _window(window: Window) -> str:
    match window:
        case TumblingWindow(size):
            first = f"TUMBLING (SIZE {format_duration(size)}"
        case HoppingWindow(size, advance):
            first = f"HOPPING (SIZE {format_duration(size)}, ADVANCE BY {format_duration(advance)}"
        case SessionWindow(gap):
            first = f"SESSION ({format_duration(gap)}"
        case _:
            assert_never(window)
    retention = "" if window.retention is None else f", RETENTION {format_duration(window.retention)}"
    grace = "" if window.grace is None else f", GRACE PERIOD {format_duration(window.grace)}"
    return f"{first}{retention}{grace})"


def format_duration(duration: Duration) -> str:
    """A number of units of time."""
    return f"{duration.amount} {duration.unit.value}"


def _values(expressions: Sequence[Expression]) -> str:
    return ", ".join([format_expression(expression, Level.CONCATENATION) for expression in expressions])
