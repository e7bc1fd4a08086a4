"""SELECT as plans of Spark: sources, joins, filters, groups, in the order in which they are computed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streams.model.sources import WINDOW_COLUMNS
from streams.model.types import BIGINT
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.projection import Item, selected
from streams.sql.analysis.scope import Origin, Scope
from streams.sql.analysis.sources import origins_of
from streams.sql.analysis.typed import Typer, function_kind
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.queries import Emit, Query
from streams.sql.planning.aggregation import grouped
from streams.sql.planning.builder import Builder
from streams.sql.planning.conditions import synthetic_key, used_columns
from streams.sql.planning.flow import Flow, exploded, filtered, references, source_columns, source_flow
from streams.sql.planning.grouping import check_grouped, grouping_of, lateness_of
from streams.sql.planning.joined import cut
from streams.sql.planning.joins import join_all
from streams.sql.planning.results import partitioned


@dataclass(frozen=True, slots=True)
class Selected:
    """What a query means, before it is planned."""

    query: Query
    origins: list[Origin]
    scope: Scope
    items: tuple[Item, ...]
    where: tree.Expression | None
    having: tree.Expression | None

    @property
    def expressions(self) -> list[Node]:
        """All expressions but those of joins."""
        query = self.query
        found: list[Node] = [item.expression for item in self.items]
        found += [one for one in (self.where, self.having) if one is not None]
        found += [self.scope.resolved(one, "GROUP BY") for one in query.group_by]
        return found + [self.scope.resolved(one, "PARTITION BY") for one in query.partition_by]


def analysed(query: Query, catalog: Catalog, *, is_stored: bool) -> Selected:
    """The names of a query resolved, and `*` spelled out."""
    origins = origins_of(query, catalog)
    if is_stored:
        _refuse_windowed_tables(query, origins)
    columns = {name: value for origin in origins for name, value in source_columns(origin).items()}
    typer = Typer(catalog, columns)
    scope = Scope(origins)
    if query.window is not None:
        scope.added.update(dict.fromkeys(WINDOW_COLUMNS, BIGINT))
    if query.joins:
        scope.added.update(synthetic_key(query.joins[-1], scope, typer))
    without = tuple(WINDOW_COLUMNS) if is_stored or query.window is not None else ()
    items = selected(query, scope, typer, without=without)
    where = None if query.where is None else scope.resolved(query.where, "WHERE")
    having = None if query.having is None else scope.resolved(query.having, "HAVING")
    return Selected(query, origins, scope, items, where, having)


def _refuse_windowed_tables(query: Query, origins: Sequence[Origin]) -> None:
    for node, origin in zip(query.sources, origins, strict=True):
        if origin.source.kind == "TABLE" and origin.source.window is not None:
            message = (
                f"KSQL does not support persistent queries on windowed tables: {origin.source.name} is one. Declare a "
                f"stream over its topic {origin.source.topic}, with WINDOW_TYPE, and query that."
            )
            raise mistake(node, message)


def flow_of(selection: Selected, catalog: Catalog, builder: Builder, *, is_stored: bool) -> Flow:
    """The rows of a query before SELECT computes its columns."""
    query = selection.query
    flow = _sources(selection, catalog, builder, is_stored=is_stored)
    if selection.where is not None:
        flow = filtered(flow, flow.typer(catalog).predicate(selection.where, "WHERE"), builder)
    flow = explode_calls(flow, selection, catalog, builder)
    if query.group_by:
        return _groups(flow, selection, catalog, builder)
    if query.partition_by:
        by = [selection.scope.resolved(one, "PARTITION BY") for one in query.partition_by]
        return partitioned(flow, by, selection.items, catalog)
    return flow


def explode_calls(flow: Flow, selection: Selected, catalog: Catalog, builder: Builder) -> Flow:
    """The rows after the table functions of SELECT, if there are any."""
    calls = [
        call
        for item in selection.items
        for call in references(item.expression, lambda one: function_kind(one, catalog) == "TABLE")
        if isinstance(call, tree.FunctionCall)
    ]
    if calls:
        if flow.kind == "TABLE":
            raise mistake(calls[0], "Table source is not supported with table functions. Use a stream.")
        return exploded(flow, list(dict.fromkeys(calls)), catalog, builder)
    return flow


def _sources(selection: Selected, catalog: Catalog, builder: Builder, *, is_stored: bool) -> Flow:
    query, origins = selection.query, selection.origins
    lateness = None if query.window is None else lateness_of(query.window)
    if query.joins:
        joins = list(zip(query.joins, origins[1:], strict=True))
        used = used_columns(selection.expressions)
        return join_all(
            origins[0], joins, scope=selection.scope, used=used, catalog=catalog, builder=builder, lateness=lateness
        )
    is_plain = not query.group_by and not is_stored
    view = builder.input(origins[0].source, starting=builder.settings.starting if is_plain else None, lateness=lateness)
    return replace(source_flow(view, origins[0]), scope=selection.scope, follows_time=lateness is not None)


def _groups(flow: Flow, selection: Selected, catalog: Catalog, builder: Builder) -> Flow:
    query = selection.query
    if query.window is not None and flow.kind == "TABLE":
        raise mistake(query.window, "WINDOW clause is not supported on a table. Group a stream instead.")
    needs_time = query.window is not None and not flow.has_time
    if builder.has_state or needs_time:
        flow = cut(flow, builder, None if query.window is None else lateness_of(query.window))
    grouping = grouping_of(flow, query, selection.items, selection.having, catalog)
    check_grouped(selection.items, selection.having, grouping, selection.scope)
    result = grouped(flow, grouping, query, catalog, builder)
    if selection.having is None:
        return result
    predicate = result.typer(catalog).predicate(selection.having, "HAVING")
    if query.emit is Emit.FINAL and result.deleted == "false":
        view = builder.sql("filtered", f"SELECT * FROM {result.view} WHERE {predicate.text}", predicate.functions)
        return replace(result, view=view)
    return filtered(result, predicate, builder)
