"""Pull queries: a look into the copies of tables where that is enough, else a SELECT of Spark over them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from streams.model.plan import Input, SqlStep
from streams.model.pull import Lookup, PullPlan
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME, Column, Source
from streams.model.types import quoted
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.facts import Facts, Options
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.projection import Item
from streams.sql.analysis.scope import Origin
from streams.sql.expressions import Expression, functions_of
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree import queries
from streams.sql.language.tree.node import Node, walk
from streams.sql.language.tree.queries import Join, JoinKind
from streams.sql.planning.aggregation import grouped
from streams.sql.planning.builder import Builder, Settings, select
from streams.sql.planning.conditions import sides_of, used_columns
from streams.sql.planning.flow import Flow, KeyColumn, filtered, source_columns, source_key
from streams.sql.planning.grouping import aggregates_in, check_grouped, grouping_of
from streams.sql.planning.joined import column_name
from streams.sql.planning.lookups import lookup_of
from streams.sql.planning.results import typed_items
from streams.sql.planning.selecting import Selected, analysed, explode_calls

_RECORD_COLUMNS: Final = frozenset({ROWPARTITION, ROWOFFSET})


def plan_pull(query: queries.Query, catalog: Catalog, facts: Facts, options: Options) -> PullPlan:
    """SELECT of what there is now."""
    selection = analysed(query, catalog, is_stored=False)
    for node, origin in zip(query.sources, selection.origins, strict=True):
        _check_source(node, origin.source, facts)
    _refuse_record_columns(selection)
    limit = None if query.limit is None else query.limit.value
    builder = Builder(Settings(service_id=options.service_id, query_id=options.query_id, starting="earliest"))
    flow = _flow(selection, catalog, builder)
    typed = typed_items(flow, selection.items, catalog)
    columns = tuple(Column(name, str(value.type)) for name, value in typed)
    found = _lookup(selection, catalog, limit)
    key_columns = _key_columns(flow.key, selection.items)
    if found is not None:
        return PullPlan(columns=columns, key_columns=key_columns, lookup=found, limit=limit)
    texts = [(name, value.text) for name, value in typed]
    builder.sql("result", select(texts, flow.view), functions_of(*(value for _, value in typed)))
    steps = [step for step in builder.steps if isinstance(step, SqlStep)]
    sources = [origin.source for origin in selection.origins]
    return PullPlan(
        columns=columns,
        key_columns=key_columns,
        sql=_nested(steps, limit),
        tables=tuple(one.name for one in sources if one.kind == "TABLE"),
        inputs=tuple(Input(view=one.name, source=one, starting="earliest") for one in sources if one.kind == "STREAM"),
        functions=tuple(sorted({name for step in steps for name in step.functions})),
        limit=limit,
    )


def _check_source(node: queries.QuerySource, source: Source, facts: Facts) -> None:
    if source.kind == "STREAM" and source.topic not in facts.partitions:
        raise mistake(node, f"Topic '{source.topic}' of {source.name} does not exist.")
    if source.kind == "TABLE" and not source.is_materialized:
        message = (
            f"The `{source.name}` table isn't queryable. To derive a queryable table, you can do 'CREATE TABLE "
            f"QUERYABLE_{source.name} AS SELECT * FROM {source.name}'. To follow its changes, write EMIT CHANGES at "
            "the end of the query."
        )
        raise mistake(node, message)


def _refuse_record_columns(selection: Selected) -> None:
    tables = {origin.name for origin in selection.origins if origin.source.kind == "TABLE"}
    for expression in selection.expressions:
        for node in walk(expression):
            if (
                isinstance(node, tree.ColumnReference)
                and node.source is not None
                and node.source.name in tables
                and node.name.name in _RECORD_COLUMNS
            ):
                message = f"Pull queries don't support the pseudo column {node.name.name} of tables. Remove it."
                raise mistake(node, message)


def _lookup(selection: Selected, catalog: Catalog, limit: int | None) -> Lookup | None:
    query, source = selection.query, selection.origins[0].source
    is_grouped = query.group_by or aggregates_in([item.expression for item in selection.items], catalog)
    if query.joins or is_grouped or source.kind != "TABLE":
        return None
    return lookup_of(source, selection.items, selection.where, selection.scope, limit)


def _key_columns(key: Sequence[KeyColumn], items: Sequence[Item]) -> int:
    """How many items from the first on are columns of the key."""
    nodes: set[Node] = {node for column in key for node in column.same_as}
    count = 0
    for item in items:
        if item.expression not in nodes:
            break
        count += 1
    return count


def _nested(steps: Sequence[SqlStep], limit: int | None) -> str:
    """The steps as one statement."""
    *before, last = steps
    names = ", ".join(f"{step.view} AS ({step.text})" for step in before)
    end = "" if limit is None else f" LIMIT {limit}"
    return f"{f'WITH {names} ' if before else ''}{last.text}{end}"


def _flow(selection: Selected, catalog: Catalog, builder: Builder) -> Flow:
    query = selection.query
    flow = _joined(selection, catalog, builder) if query.joins else _single(selection)
    if selection.where is not None:
        flow = filtered(flow, flow.typer(catalog).predicate(selection.where, "WHERE"), builder)
    flow = explode_calls(flow, selection, catalog, builder)
    calls = aggregates_in([item.expression for item in selection.items], catalog)
    if not query.group_by and not calls:
        return flow
    grouping = grouping_of(flow, query, selection.items, selection.having, catalog)
    check_grouped(selection.items, selection.having, grouping, selection.scope)
    flow = replace(grouped(flow, grouping, query, catalog, builder), deleted=None)
    if selection.having is None:
        return flow
    return filtered(flow, flow.typer(catalog).predicate(selection.having, "HAVING"), builder)


def _single(selection: Selected) -> Flow:
    """The rows that there are: none of them is deleted, so they are treated like those of a stream."""
    (origin,) = selection.origins
    return Flow(
        view=quoted(origin.source.name),
        kind="STREAM",
        columns=source_columns(origin),
        key=source_key(origin),
        scope=selection.scope,
        order=quoted(ROWTIME),
        has_time=False,
    )


def _joined(selection: Selected, catalog: Catalog, builder: Builder) -> Flow:
    """The rows of several tables, as Spark joins them."""
    query, origins, scope = selection.query, selection.origins, selection.scope
    columns = _qualified(origins)
    used = used_columns(selection.expressions)
    text = _from_text(origins[0])
    flow = Flow(
        view="",
        kind="STREAM",
        columns={one: value for one, value in columns.items() if one[0] == origins[0].name},
        scope=scope,
        order=quoted(ROWTIME),
        has_time=False,
    )
    key = Expression("null", next(iter(columns.values())).type)
    functions: frozenset[str] = frozenset()
    for join, origin in zip(query.joins, origins[1:], strict=True):
        sides = sides_of(flow, origin, join, scope, catalog)
        flow.columns.update({one: value for one, value in columns.items() if one[0] == origin.name})
        right = flow.typer(catalog).expression(sides.right)
        text += f" {join.kind.value} JOIN {_from_text(origin)} ON {sides.left_value.text} = {right.text}"
        key = _key(join, sides.left_value, right)
        functions |= functions_of(sides.left_value, right)
    times = ", ".join(f"{quoted(origin.name)}.`{ROWTIME}`" for origin in origins)
    texts = [(column_name(scope, *one), value.text) for one, value in columns.items() if one in used]
    texts += [("key", key.text), (ROWTIME, f"greatest({times})")]
    view = builder.sql("joined", select(texts, text), functions)
    joined = {
        one: Expression(quoted(column_name(scope, *one)), value.type) for one, value in columns.items() if one in used
    }
    joined |= {("", name): Expression("`key`", kind) for name, kind in scope.added.items()}
    return replace(flow, view=view, columns=joined)


def _qualified(origins: Sequence[Origin]) -> dict[tuple[str, str], Expression]:
    return {
        (owner, name): Expression(f"{quoted(owner)}.{value.text}", value.type)
        for origin in origins
        for (owner, name), value in source_columns(origin).items()
        if origin.source.kind == "STREAM" or name not in _RECORD_COLUMNS
    }


def _from_text(origin: Origin) -> str:
    return f"{quoted(origin.source.name)} AS {quoted(origin.name)}"


def _key(join: Join, left: Expression, right: Expression) -> Expression:
    match join.kind:
        case JoinKind.RIGHT:
            return right
        case JoinKind.FULL:
            return Expression(f"coalesce({left.text}, {right.text})", left.type)
        case _:
            return left
