"""Aggregation: natively by Spark where it can, by processors for sessions and for tables, whose rows are taken back."""

from collections.abc import Sequence

import msgspec

from streams.model.plan import (
    DELETED,
    STREAM_TIME,
    TIME,
    Aggregate,
    Changes,
    ProcessStep,
    SessionAggregates,
    UndoAggregates,
)
from streams.model.sources import ROWTIME, WINDOW_COLUMNS, WINDOWEND, WINDOWSTART, Column, WindowInfo
from streams.model.types import BIGINT, INTEGER, SqlType, quoted
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.scope import NO_SOURCE
from streams.sql.analysis.typed import Typer
from streams.sql.expressions import Expression, functions_of
from streams.sql.functions.table import FUNCTIONS
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.queries import Emit, Query, SessionWindow
from streams.sql.planning.builder import Builder, select
from streams.sql.planning.flow import BY_TIME, Flow, KeyColumn
from streams.sql.planning.grouping import CHANGE, SIGN, Grouping, columns_taken, match_of, window_of


def grouped(flow: Flow, grouping: Grouping, query: Query, catalog: Catalog, builder: Builder) -> Flow:
    """The table of groups: keys, aggregates, ROWTIME, and the bounds of windows."""
    if flow.kind == "TABLE":
        return _of_table(flow, grouping, catalog, builder)
    order = _order(flow, grouping)
    prepared = _prepared(flow, grouping, builder)
    if isinstance(query.window, SessionWindow):
        return _sessions(flow, grouping, query, prepared, catalog, builder)
    names = grouping.key_names
    columns = [(name, quoted(name)) for name in names]
    groups = [quoted(name) for name in names]
    info = None
    if query.window is not None:
        info, advance, grace = window_of(query.window)
        if info.kind == "HOPPING":
            prepared = _open_windows(prepared, info, advance, grace)
            groups.append("window")
        else:
            groups.append(_window_text(info, advance))
        columns += [(WINDOWSTART, "unix_millis(window.start)"), (WINDOWEND, "unix_millis(window.end)")]
    results = _native(grouping, catalog, order)
    columns += [(f"result_{number}", one.text) for number, one in enumerate(results)]
    columns.append((ROWTIME, f"max(`{ROWTIME}`)"))
    text = select(columns, prepared, rest=f" GROUP BY {', '.join(groups)}" if groups else "")
    builder.keeps_state("append" if query.emit is Emit.FINAL else "update")
    view = builder.sql("aggregated", text, functions_of(*results))
    return _result(flow, grouping, view, [one.type for one in results], info)


def _window_text(info: WindowInfo, advance_ms: int) -> str:
    step = f", '{advance_ms} milliseconds'" if info.kind == "HOPPING" else ""
    return f"window(`{TIME}`, '{info.size_ms} milliseconds'{step})"


def _open_windows(prepared: str, info: WindowInfo, advance_ms: int, grace_ms: int) -> str:
    """A row for each window that is open: of the windows of a late record, the first ones may have been closed."""
    windows = f"SELECT *, {_window_text(info, advance_ms)} AS window FROM {prepared}"
    return f"({windows}) WHERE unix_millis(window.end) + {grace_ms} > `{STREAM_TIME}`"


def _order(flow: Flow, grouping: Grouping) -> str:
    """The records of a group are in one partition if it is made by the key; else only time gives their order."""
    by_key = [key.value.text for key in flow.key] == [key.text for key in grouping.keys]
    if by_key or flow.order == f"`{ROWTIME}`":
        return flow.order
    return BY_TIME


def _prepared(flow: Flow, grouping: Grouping, builder: Builder) -> str:
    """Keys and arguments as columns; rows whose group has a NULL are left out."""
    columns = grouping.prepared()
    texts = [(name, value.text) for name, value in columns] + flow.time_columns()
    inner = select(texts, flow.view)
    complete = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in grouping.key_names) or "true"
    functions = functions_of(*(value for _, value in columns))
    return builder.sql("prepared", f"SELECT * FROM ({inner}) WHERE {complete}", functions)


def _native(grouping: Grouping, catalog: Catalog, order: str) -> list[Expression]:
    """The aggregates in Spark's SQL, over the columns of the prepared view."""
    typer = Typer(catalog, {}, order=order)
    found = []
    for call, arguments in zip(grouping.calls, grouping.arguments, strict=True):
        found.append(typer.call(call, _as_columns(grouping, arguments)))
    return found


def _as_columns(grouping: Grouping, arguments: Sequence[Expression]) -> list[Expression]:
    texts = list(grouping.inputs)
    return [
        Expression(f"`value_{texts.index(one.text)}`", one.type, one.literal) if one.text in grouping.inputs else one
        for one in arguments
    ]


def _result(
    flow: Flow,
    grouping: Grouping,
    view: str,
    types: Sequence[SqlType],
    window: WindowInfo | None,
    deleted: str | None = None,
) -> Flow:
    replaced: dict[Node, Expression] = {}
    keys = []
    for number, (node, key) in enumerate(zip(grouping.group_by, grouping.keys, strict=True)):
        value = Expression(f"`key_{number}`", key.type)
        replaced[node] = value
        name = node.name.name if isinstance(node, tree.ColumnReference) else f"KSQL_COL_{number}"
        keys.append(KeyColumn(value, (node,), name))
    for number, (call, kind) in enumerate(zip(grouping.calls, types, strict=True)):
        replaced[call] = Expression(f"`result_{number}`", kind)
    bounds = {(NO_SOURCE, name): Expression(quoted(name), BIGINT) for name in WINDOW_COLUMNS} if window else {}
    return Flow(
        view=view,
        kind="TABLE",
        columns=bounds,
        key=tuple(keys),
        scope=flow.scope,
        window=window,
        deleted=deleted or "false",
        replaced=replaced,
        order=flow.order,
        has_time=False,
    )


def _aggregates(grouping: Grouping, catalog: Catalog) -> tuple[tuple[Aggregate, ...], list[SqlType]]:
    """The aggregates for a processor."""
    found, types = [], []
    for number, (call, arguments) in enumerate(zip(grouping.calls, grouping.arguments, strict=True)):
        match = match_of(call, arguments, catalog)
        count = columns_taken(call, arguments, catalog)
        for one in arguments[count:]:
            if one.literal is None:
                raise mistake(call, f"The last argument of {call.name.name} has to be a literal.")
        name = call.name.name.upper()
        users = None if name in FUNCTIONS else catalog.user_function(name)
        types.append(match.result)
        found.append(
            Aggregate(
                name=f"result_{number}",
                function=name if users is None else users.processor_name,
                arguments=tuple(grouping.argument_names(arguments[:count])),
                literals=tuple(msgspec.Raw(msgspec.json.encode(one.literal)) for one in arguments[count:]),
                argument_types=tuple(str(one.type) for one in arguments[:count]),
                type=str(match.result),
            )
        )
    return tuple(found), types


def _output(grouping: Grouping, aggregates: Sequence[Aggregate], *more: str) -> tuple[Column, ...]:
    keys = zip(grouping.key_names, grouping.keys, strict=True)
    return (
        *(Column(name, str(key.type)) for name, key in keys),
        *(Column(one.name, one.type) for one in aggregates),
        *(Column(name, str(BIGINT)) for name in (ROWTIME, *more)),
    )


def _sessions(flow: Flow, grouping: Grouping, query: Query, prepared: str, catalog: Catalog, builder: Builder) -> Flow:
    if query.window is None:
        raise ValueError("a session has a window")
    _check_merge(grouping, catalog)
    aggregates, types = _aggregates(grouping, catalog)
    info, gap, grace = window_of(query.window)
    view = builder.process(
        ProcessStep(
            view=builder.view_for("aggregated"),
            input=prepared,
            keys=tuple(grouping.key_names),
            processor=SessionAggregates(
                gap_ms=gap, grace_ms=grace, aggregates=aggregates, is_final=query.emit is Emit.FINAL
            ),
            output=_output(grouping, aggregates, WINDOWSTART, WINDOWEND),
            reads_watermark=True,
        )
    )
    builder.keeps_state("update")
    return _result(flow, grouping, view, types, info, f"`{DELETED}`")


def _of_table(flow: Flow, grouping: Grouping, catalog: Catalog, builder: Builder) -> Flow:
    """Rows that change are taken back from their group before they are added to theirs again."""
    _check_undo(grouping, catalog)
    prepared = grouping.prepared()
    owners = [(f"row_{number}", key.value) for number, key in enumerate(flow.key)]
    missing = " OR ".join(f"{value.text} IS NULL" for value in grouping.keys)
    columns = [(name, value.text) for name, value in (*owners, *prepared)]
    columns += [*flow.time_columns(), (DELETED, f"({flow.deleted} OR {missing})")]
    functions = functions_of(*(value for _, value in (*owners, *prepared)))
    rows = builder.sql("prepared", select(columns, flow.view), functions)
    names = [name for name, _ in prepared]
    changes = builder.process(
        ProcessStep(
            view=builder.view_for("changed"),
            input=rows,
            keys=tuple(name for name, _ in owners),
            processor=Changes(columns=tuple(names)),
            output=(
                *(Column(name, str(value.type)) for name, value in (*owners, *prepared)),
                Column(ROWTIME, str(BIGINT)),
                Column(SIGN, str(INTEGER)),
                Column(CHANGE, str(BIGINT)),
            ),
        )
    )
    builder.keeps_state("update")
    kept = [*names, ROWTIME, SIGN]
    split = len(grouping.keys)
    view = builder.cut(
        select([(name, quoted(name)) for name in kept], changes),
        [Column(name, str(value.type)) for name, value in prepared[:split]],
        [*(Column(name, str(value.type)) for name, value in prepared[split:]), Column(SIGN, str(INTEGER))],
        kind="STREAM",
    )
    aggregates, types = _aggregates(grouping, catalog)
    result = builder.process(
        ProcessStep(
            view=builder.view_for("aggregated"),
            input=view,
            keys=tuple(grouping.key_names),
            processor=UndoAggregates(aggregates=aggregates),
            output=_output(grouping, aggregates),
        )
    )
    builder.keeps_state("update")
    return _result(flow, grouping, result, types, None, f"`{DELETED}`")


def _check_undo(grouping: Grouping, catalog: Catalog) -> None:
    refused = [
        call
        for call, arguments in zip(grouping.calls, grouping.arguments, strict=True)
        if not match_of(call, arguments, catalog).overload.undo
    ]
    if refused:
        names = ", ".join(dict.fromkeys(call.name.name.upper() for call in refused))
        message = f"The aggregation function(s) ({names}) cannot be applied to a table source, only to a stream source."
        raise mistake(refused[0], message)


def _check_merge(grouping: Grouping, catalog: Catalog) -> None:
    for call, arguments in zip(grouping.calls, grouping.arguments, strict=True):
        if not match_of(call, arguments, catalog).overload.merge:
            message = (
                f"The aggregate {call.name.name.upper()} cannot be used in session windows, because sessions become "
                "one when a record falls between them: add a method `merge` to it."
            )
            raise mistake(call, message)
