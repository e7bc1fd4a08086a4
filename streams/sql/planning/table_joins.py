"""Joins of tables: by the keys of both, as an aggregate of Spark, and by a foreign key, with a processor."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from streams.model.plan import DELETED, Changes, ForeignKeyJoin, NewestRows, ProcessStep
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME, Column
from streams.model.types import BIGINT, INTEGER, quoted
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.scope import Origin
from streams.sql.expressions import Expression, functions_of, sql_text
from streams.sql.language.tree.queries import JoinKind
from streams.sql.planning.builder import select
from streams.sql.planning.conditions import Sides, check_foreign, check_primary
from streams.sql.planning.flow import Flow
from streams.sql.planning.grouping import CHANGE, SIGN
from streams.sql.planning.joined import KEY, Context, cut

_SIDE: Final = "__side"
_RECORD: Final = [(name, quoted(name)) for name in (ROWPARTITION, ROWOFFSET)]
_Named = Sequence[tuple[str, Expression]]


def join_tables(context: Context, left: Flow, right: Origin, sides: Sides, *, is_only: bool) -> Flow:
    """Two tables, by their keys, or by any expression on the left."""
    check_primary(right, sides)
    if sides.join.within is not None:
        raise mistake(sides.join.within, "A window definition was provided for a Table-Table join. Remove WITHIN.")
    if len(left.key) == 1 and sides.left in left.key[0].same_as:
        return _by_keys(context, left, right, sides)
    check_foreign(left, right, sides.join, is_only=is_only)
    return _by_foreign_key(context, left, right, sides)


def _by_keys(context: Context, left: Flow, right_origin: Origin, sides: Sides) -> Flow:
    builder = context.builder
    left = cut(left, builder, None) if builder.has_state else left
    right = context.read(right_origin)
    parts = [context.columns(left), context.columns(right)]
    # A row that is deleted has nothing but its key.
    keys = left.key[0].value, right.key[0].value
    both = _records(context, (left, right), keys, parts)
    latest = ", ".join(
        f"max_by(`row_{side}`, `{ROWOFFSET}`) FILTER (WHERE `{_SIDE}` = {side}) AS `row_{side}`" for side in (0, 1)
    )
    rows = builder.sql("aggregated", f"SELECT `{KEY}`, {latest} FROM {both} GROUP BY `{KEY}`")
    builder.keeps_state("update")
    view = builder.sql("joined", _join_text(parts, rows, sides.join.kind))
    flow = context.behind(left, view, context.key(left, sides), left, right)
    return replace(flow, rowtime=quoted(ROWTIME), order=quoted(ROWTIME), deleted=quoted(DELETED), has_time=False)


def _records(
    context: Context, flows: tuple[Flow, Flow], keys: tuple[Expression, Expression], parts: Sequence[_Named]
) -> str:
    """The records of both topics, each with its row in the place of its side."""
    selects = []
    for side, (flow, key) in enumerate(zip(flows, keys, strict=True)):
        named = "".join(f", {sql_text(name)}, {value.text}" for name, value in parts[side])
        row = f"named_struct('{ROWTIME}', {flow.rowtime}, '{DELETED}', {flow.deleted}{named})"
        text = select([(KEY, key.text), ("row", row), (ROWOFFSET, quoted(ROWOFFSET))], flow.view)
        view = context.builder.sql("side", text, functions_of(key, *(value for _, value in parts[side])))
        rows = ", ".join(f"{'`row`' if one == side else 'null'} AS `row_{one}`" for one in (0, 1))
        selects.append(
            f"SELECT `{KEY}`, {side} AS `{_SIDE}`, {rows}, `{ROWOFFSET}` FROM {view} WHERE `{KEY}` IS NOT NULL"
        )
    return context.builder.sql("both", " UNION ALL ".join(selects))


def _join_text(parts: Sequence[_Named], view: str, kind: JoinKind) -> str:
    """The row of both sides; deleted where the kind of the join has none."""
    there = [f"coalesce(NOT `row_{side}`.`{DELETED}`, false)" for side in (0, 1)]
    exists = {
        JoinKind.INNER: f"({there[0]} AND {there[1]})",
        JoinKind.LEFT: there[0],
        JoinKind.RIGHT: there[1],
        JoinKind.FULL: f"({there[0]} OR {there[1]})",
    }[kind]
    columns = [
        (name, f"if({there[side]}, `row_{side}`.{quoted(name)}, null)") for side in (0, 1) for name, _ in parts[side]
    ]
    present = ", ".join(f"if({there[side]}, `row_{side}`.`{ROWTIME}`, null)" for side in (0, 1))
    last = ", ".join(f"`row_{side}`.`{ROWTIME}`" for side in (0, 1))
    columns += [
        (KEY, quoted(KEY)),
        (ROWTIME, f"if({exists}, greatest({present}), greatest({last}))"),
        (DELETED, f"NOT {exists}"),
    ]
    return select(columns, view)


def _by_foreign_key(context: Context, left: Flow, right_origin: Origin, sides: Sides) -> Flow:
    """Changes of left rows go to the right rows that they name, by an internal topic."""
    builder = context.builder
    owners = [(f"row_{number}", key.value) for number, key in enumerate(left.key)]
    columns = context.columns(left)
    typed = [*owners, *columns, (KEY, sides.left_value)]
    texts = (
        [(name, value.text) for name, value in typed]
        + _RECORD
        + [(ROWTIME, left.rowtime), (DELETED, f"{left.deleted}")]
    )
    rows = builder.sql("side", select(texts, left.view), functions_of(*(value for _, value in typed)))
    changed = builder.process(
        ProcessStep(
            view=builder.view_for("changed"),
            input=rows,
            keys=tuple(name for name, _ in owners),
            processor=Changes(columns=(KEY, *(name for name, _ in columns))),
            output=(*_columns(typed), *_columns([(ROWTIME, _LONG), (SIGN, _INT), (CHANGE, _LONG)])),
        )
    )
    builder.keeps_state("update")
    names = [*(name for name, _ in typed), ROWTIME, SIGN, CHANGE]
    value = _columns([*owners, *columns, (CHANGE, _LONG)])
    view = builder.cut(
        select([(name, quoted(name)) for name in names], changed),
        _columns([(KEY, sides.left_value)]),
        [*value, *_columns([(SIGN, _INT)])],
        kind="STREAM",
    )
    right = context.read(right_origin)
    joined = _foreign_half(context, view, value, right, sides, [name for name, _ in owners])
    keys = tuple(
        replace(one, value=Expression(quoted(name), one.value.type))
        for one, (name, _) in zip(left.key, owners, strict=True)
    )
    return replace(
        left,
        view=joined,
        columns=context.joined(left, right),
        key=keys,
        rowtime=quoted(ROWTIME),
        deleted=quoted(DELETED),
        order=quoted(ROWTIME),
        has_time=False,
    )


_LONG: Final = Expression("null", BIGINT)
_INT: Final = Expression("null", INTEGER)


def _columns(named: _Named) -> list[Column]:
    return [Column(name, str(value.type)) for name, value in named]


def _foreign_half(
    context: Context, view: str, left: Sequence[Column], right: Flow, sides: Sides, owners: Sequence[str]
) -> str:
    key = right.typer(context.catalog).expression(sides.right)
    columns = context.columns(right)
    names = [column.name for column in left]
    record = ", ".join(text for _, text in _RECORD)
    lefts = ", ".join(quoted(name) for name in names)
    nulls = "".join(f", null AS {quoted(name)}" for name, _ in columns)
    rights = "".join(f", {value.text} AS {quoted(name)}" for name, value in columns)
    no_left = ", ".join(f"null AS {quoted(name)}" for name in names)
    text = (
        f"SELECT `{KEY}`, 0 AS `{_SIDE}`, `{SIGN}`, {lefts}{nulls}, {record}, `{ROWTIME}`, false AS `{DELETED}` "
        f"FROM {view} UNION ALL SELECT {key.text}, 1, null, {no_left}{rights}, {record}, {right.rowtime}, "
        f"{right.deleted} FROM {right.view}"
    )
    both = context.builder.sql("both", text, functions_of(key, *(value for _, value in columns)))
    kind: Literal["INNER", "LEFT"] = "INNER" if sides.join.kind is JoinKind.INNER else "LEFT"
    joined = context.builder.process(
        ProcessStep(
            view=context.builder.view_for("joined"),
            input=both,
            keys=(KEY,),
            processor=ForeignKeyJoin(
                left_key=tuple(owners),
                left=tuple(name for name in names if name not in owners),
                right=tuple(name for name, _ in columns),
                kind=kind,
            ),
            output=(*left, *_columns(columns), *_columns([(ROWTIME, _LONG)])),
        )
    )
    kept = [column for column in (*left, *_columns(columns)) if column.name != CHANGE]
    newest = context.builder.process(
        ProcessStep(
            view=context.builder.view_for("newest"),
            input=joined,
            keys=tuple(owners),
            processor=NewestRows(order=CHANGE, columns=tuple(column.name for column in kept)),
            output=(*kept, *_columns([(ROWTIME, _LONG)])),
        )
    )
    # Only so does Spark have two steps with state in one query.
    context.builder.keeps_state("append")
    return newest
