"""JOIN: the sources of a query as one flow, joined from left to right."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from streams.model.plan import TIME, Lateness
from streams.model.sources import ROWTIME
from streams.model.types import quoted
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.scope import Origin, Scope
from streams.sql.expressions import Expression, functions_of
from streams.sql.language.tree.queries import Join, JoinKind, Within
from streams.sql.planning.builder import Builder, select
from streams.sql.planning.conditions import (
    Sides,
    Used,
    check_full,
    check_primary,
    check_sides,
    sides_of,
    used_columns,
)
from streams.sql.planning.flow import Flow, source_columns, source_flow
from streams.sql.planning.joined import KEY, Context, column_name, cut
from streams.sql.planning.table_joins import join_tables

_DAY_MS: Final = 86_400_000


def join_all(
    first: Origin,
    joins: Sequence[tuple[Join, Origin]],
    *,
    scope: Scope,
    used: Used,
    catalog: Catalog,
    builder: Builder,
    lateness: Lateness | None,
) -> Flow:
    """All sources joined; `lateness` is that of the window behind the joins."""
    used |= used_columns(scope.resolved(join.condition, "JOIN ON") for join, _ in joins)
    context = Context(scope, used, catalog, builder)
    check_full(joins)
    flow = context.read(first, _first_lateness(first, joins, lateness))
    for join, right in joins:
        check_sides(flow, right, join)
        sides = sides_of(flow, right, join, scope, catalog)
        if right.source.kind == "STREAM":
            flow = _join_streams(context, flow, right, sides)
        elif flow.kind == "STREAM":
            flow = _look_up(context, flow, right, sides)
        else:
            flow = join_tables(context, flow, right, sides, is_only=len(joins) == 1)
    return flow


def _first_lateness(first: Origin, joins: Sequence[tuple[Join, Origin]], lateness: Lateness | None) -> Lateness | None:
    """What the left-most source needs for the first step that goes by time."""
    if first.source.kind == "TABLE":
        return None
    for join, right in joins:
        if right.source.kind == "STREAM":
            return None if join.within is None else join_lateness(join, join.within)
    return lateness


def join_lateness(join: Join, within: Within) -> Lateness:
    """How old a record may be that still finds its partners: records of the two topics come in any order."""
    span = max(within.before.ms, within.after.ms)
    if within.grace is not None:
        grace = within.grace.ms
    else:
        # Rows without a partner must not wait for a day.
        grace = max(_DAY_MS - within.before.ms - within.after.ms, 0) if join.kind is JoinKind.INNER else 0
    return Lateness(size_ms=0, advance_ms=0, grace_ms=span + grace)


def _join_streams(context: Context, left: Flow, right_origin: Origin, sides: Sides) -> Flow:
    join, within = sides.join, sides.join.within
    if within is None:
        message = (
            "Stream-stream joins must have a WITHIN clause specified. None was provided. Write, for example: "
            f"JOIN {right_origin.source.name} WITHIN 1 HOUR ON ..."
        )
        raise mistake(join, message)
    lateness = join_lateness(join, within)
    if context.builder.has_state:
        left = cut(left, context.builder, lateness)
    right = context.read(right_origin, lateness)
    views = [
        _side(context, left, left.typer(context.catalog).expression(sides.left)),
        _side(context, right, right.typer(context.catalog).expression(sides.right)),
    ]
    view = context.builder.sql("joined", _stream_join_text(context, left, right, views, sides.join.kind, within))
    context.builder.keeps_state("append")
    flow = context.behind(left, view, context.key(left, sides), left, right)
    return replace(flow, order=quoted(ROWTIME), rowtime=quoted(ROWTIME), has_time=False)


def _side(context: Context, flow: Flow, key: Expression) -> str:
    columns = [*context.columns(flow), (KEY, key)]
    texts = [(name, one.text) for name, one in columns]
    texts += [(ROWTIME, flow.rowtime), (TIME, quoted(TIME)), *flow.window_columns()]
    return context.builder.sql("side", select(texts, flow.view), functions_of(*(one for _, one in columns)))


def _stream_join_text(
    context: Context, left: Flow, right: Flow, views: Sequence[str], kind: JoinKind, within: Within
) -> str:
    columns = [(name, f"l.{quoted(name)}") for name, _ in context.columns(left)]
    columns += [(name, f"r.{quoted(name)}") for name, _ in context.columns(right)]
    columns.append((KEY, _key_text(kind)))
    columns.append((ROWTIME, f"greatest(l.`{ROWTIME}`, r.`{ROWTIME}`)"))
    bounds = [name for name, _ in left.window_columns()]
    columns += [(name, f"coalesce(l.{quoted(name)}, r.{quoted(name)})") for name in bounds]
    same = " AND ".join(f"l.{quoted(name)} = r.{quoted(name)}" for name in [KEY, *bounds])
    before, after = (f"INTERVAL {one.ms} MILLISECONDS" for one in (within.before, within.after))
    near = f"r.`{TIME}` >= l.`{TIME}` - {before} AND r.`{TIME}` <= l.`{TIME}` + {after}"
    return select(columns, f"{views[0]} AS l {kind.value} JOIN {views[1]} AS r ON {same} AND {near}")


def _key_text(kind: JoinKind) -> str:
    match kind:
        case JoinKind.RIGHT:
            return f"r.`{KEY}`"
        case JoinKind.FULL:
            return f"coalesce(l.`{KEY}`, r.`{KEY}`)"
        case _:
            return f"l.`{KEY}`"


def _look_up(context: Context, left: Flow, right: Origin, sides: Sides) -> Flow:
    """A stream and a table, as the table is when the record comes."""
    join = sides.join
    if join.within is not None:
        raise mistake(join.within, "A window definition was provided for a Stream-Table join. Remove WITHIN.")
    if join.kind not in {JoinKind.INNER, JoinKind.LEFT}:
        message = f"{join.kind.value} joins of a stream and a table are not supported. Use INNER or LEFT JOIN."
        raise mistake(join, message)
    check_primary(right, sides)
    keep = [*context.columns(left), (KEY, sides.left_value)]
    texts = [(name, one.text) for name, one in keep] + left.time_columns() + left.window_columns()
    view = context.builder.sql("side", select(texts, left.view), functions_of(*(one for _, one in keep)))
    pairs = [
        (name, column_name(context.scope, owner, name))
        for owner, name in source_columns(right)
        if (owner, name) in context.used
    ]
    kind: Literal["INNER", "LEFT"] = "INNER" if join.kind is JoinKind.INNER else "LEFT"
    found = context.builder.lookup(view, right.source, KEY, pairs, kind)
    return context.behind(left, found, context.key(left, sides), left, source_flow("", right))
