"""Plans of all statements that run a query."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from streams.model.plan import Query, QueryPlan, TopicRequest
from streams.model.sources import Column, Format, Kind, Source
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.facts import Facts, Options
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.sources import unknown_source
from streams.sql.casts import cast
from streams.sql.conversion import conversion_cost
from streams.sql.expressions import Expression
from streams.sql.language.formatting.statements import format_statement
from streams.sql.language.tree import queries as tree
from streams.sql.language.tree.expressions import NullLiteral
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.queries import JoinKind
from streams.sql.language.tree.statements import (
    CreateAsSelect,
    Explain,
    InsertSelect,
    Property,
    SourceKind,
    Statement,
)
from streams.sql.planning.builder import Builder, Settings
from streams.sql.planning.columns import check_format
from streams.sql.planning.flow import Flow
from streams.sql.planning.grouping import window_of
from streams.sql.planning.properties import Properties
from streams.sql.planning.pulls import plan_pull
from streams.sql.planning.results import Result, give_result, stored_result, typed_items, write_result
from streams.sql.planning.selecting import Selected, analysed, flow_of
from streams.sql.planning.sources import check_name, taken, timestamp_of
from streams.sql.planning.statements import with_properties
from streams.sql.planning.topics import sink_topic

__all__ = ["Planned", "plan_create", "plan_insert", "plan_pull", "plan_push", "sources_of"]
_TOPIC_PREFIX: Final = "ksql.output.topic.name.prefix"
_NO_GRACE: Final = (
    "This join has no GRACE PERIOD. Rows without a partner are given out when the time of WITHIN has passed; records "
    "that come later still are dead letters. Write GRACE PERIOD behind WITHIN to say how long to wait."
)


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A persistent query, the stream or table that it fills, and its topic."""

    sink: Source
    query: Query
    topic: TopicRequest
    warnings: tuple[str, ...] = ()
    exists: bool = False
    """IF NOT EXISTS, and there is one of this name: nothing is to be done."""


def plan_create(statement: CreateAsSelect, catalog: Catalog, facts: Facts, options: Options) -> Planned:
    """CREATE STREAM or TABLE ... AS SELECT."""
    existing = catalog.source(statement.name.name)
    if existing is not None and statement.if_not_exists:
        return _existing(statement, existing, catalog)
    check_name(statement, existing)
    given = Properties(statement.properties, options)
    selection = analysed(statement.query, catalog, is_stored=True)
    source = selection.origins[0].source
    topic_name = given.text("KAFKA_TOPIC") or f"{options.properties.get(_TOPIC_PREFIX, '')}{statement.name.name}"
    builder = _builder(options, given, topic_name, source, facts)
    flow = flow_of(selection, catalog, builder, is_stored=True)
    _check_kind(statement, flow)
    result = stored_result(flow, selection.items, catalog, statement.name.name, statement.name)
    sink = _sink(statement, topic_name, flow, result, source, given)
    write_result(flow, result, builder, sink.timestamp)
    topic = sink_topic(
        sink,
        source,
        given,
        facts,
        options,
        statement=statement.name,
        retention_ms=_retention_ms(statement.query),
    )
    text = _stored_text(statement, sink, topic)
    sink = msgspec.structs.replace(sink, partitions=topic.partitions, statement=text, query_id=options.query_id)
    query = _query(options, text, selection, builder, sink)
    return Planned(sink=sink, query=query, topic=topic, warnings=_warnings(statement.query))


def _existing(statement: CreateAsSelect, existing: Source, catalog: Catalog) -> Planned:
    query = None if existing.query_id is None else catalog.query(existing.query_id)
    if query is None:
        query = Query(id="", statement=existing.statement, reads=(), writes=existing.name, plans=())
    topic = TopicRequest(name=existing.topic)
    return Planned(sink=existing, query=query, topic=topic, exists=True, warnings=(taken(statement, existing),))


def _builder(options: Options, given: Properties, topic: str, source: Source, facts: Facts) -> Builder:
    partitions = facts.partitions.get(source.topic) or source.partitions or options.default_partitions
    earliest = options.properties.get("auto.offset.reset", "latest").lower() == "earliest"
    return Builder(
        Settings(
            service_id=options.service_id,
            query_id=options.query_id,
            starting="earliest" if earliest else "latest",
            on_error=given.on_error() if topic else "skip",
            dead_letter_topic=given.dead_letter_topic(topic) if topic else None,
            partitions=partitions,
        )
    )


def _check_kind(statement: CreateAsSelect, flow: Flow) -> None:
    if flow.kind == statement.kind.value:
        return
    written = statement.kind.value
    message = (
        f"Invalid result type. Your SELECT query produces a {flow.kind}. Please use CREATE {flow.kind} AS SELECT "
        f"statement instead of CREATE {written} AS SELECT."
    )
    raise mistake(statement.name, message)


def _sink(
    statement: CreateAsSelect, topic: str, flow: Flow, result: Result, source: Source, given: Properties
) -> Source:
    kind: Kind = "TABLE" if statement.kind is SourceKind.TABLE else "STREAM"
    key_format = _key_format(statement, result, source, given)
    value_format = given.format("VALUE", statement=statement.name, inherited=source.value_format)
    check_format(key_format, result.key_columns, "KEY", statement.name)
    check_format(value_format, result.value_columns, "VALUE", statement.name)
    wraps = given.wraps_single(value_format, len(result.value), statement.name)
    return Source(
        name=statement.name.name,
        kind=kind,
        topic=topic,
        key_format=key_format,
        value_format=msgspec.structs.replace(value_format, wraps_single=wraps),
        key=result.key_columns,
        value=result.value_columns,
        window=flow.window,
        timestamp=timestamp_of(given, (*result.key_columns, *result.value_columns), statement.name),
        is_materialized=kind == "TABLE",
    )


def _key_format(statement: CreateAsSelect, result: Result, source: Source, given: Properties) -> Format:
    is_keyless = any(isinstance(one, NullLiteral) for one in statement.query.partition_by)
    if is_keyless and given.format_name("KEY") is None:
        return Format(name="NONE")
    inherited = None if source.key_format.name == "NONE" and result.key else source.key_format
    return given.format("KEY", statement=statement.name, inherited=inherited)


def _retention_ms(query: tree.Query) -> int | None:
    """How long the topic of a windowed table keeps its windows."""
    if query.window is None:
        return None
    if query.window.retention is not None:
        return query.window.retention.ms
    info, advance, grace = window_of(query.window)
    return (info.size_ms or advance) + grace


def _stored_text(statement: CreateAsSelect, sink: Source, topic: TopicRequest) -> str:
    properties = _with_defaults(statement.properties, sink, topic)
    query = statement.query if statement.query.emit else replace(statement.query, emit=tree.Emit.CHANGES)
    return format_statement(replace(statement, properties=properties, query=query))


def _with_defaults(given: Sequence[Property], sink: Source, topic: TopicRequest) -> tuple[Property, ...]:
    return with_properties(
        given,
        {
            "KAFKA_TOPIC": sink.topic,
            "PARTITIONS": topic.partitions,
            "REPLICAS": topic.replicas,
            "KEY_FORMAT": sink.key_format.name,
            "VALUE_FORMAT": sink.value_format.name,
        },
    )


def _query(options: Options, text: str, selection: Selected, builder: Builder, sink: Source) -> Query:
    plans = builder.finish(sink)
    topics = list(builder.topics)
    letters = builder.settings.dead_letter_topic
    if letters is not None:
        topics.append(TopicRequest(name=letters, partitions=1, configs={"cleanup.policy": "delete"}))
    return Query(
        id=options.query_id,
        statement=text,
        reads=tuple(origin.source.name for origin in selection.origins),
        writes=sink.name,
        plans=plans,
        topics=tuple(topics),
        properties=dict(options.properties),
    )


def _warnings(query: tree.Query) -> tuple[str, ...]:
    waits = any(
        join.within is not None and join.within.grace is None and join.kind is not JoinKind.INNER
        for join in query.joins
    )
    return (_NO_GRACE,) if waits else ()


def plan_insert(statement: InsertSelect, catalog: Catalog, facts: Facts, options: Options) -> Planned:
    """INSERT INTO ... SELECT."""
    sink = catalog.source(statement.target.name)
    if sink is None:
        raise mistake(statement.target, unknown_source(statement.target, catalog))
    _check_target(sink, statement.target)
    given = Properties(statement.properties, options)
    selection = analysed(statement.query, catalog, is_stored=True)
    builder = _builder(options, given, sink.topic, selection.origins[0].source, facts)
    flow = flow_of(selection, catalog, builder, is_stored=True)
    if flow.kind == "TABLE":
        message = f"Incompatible data sink and query result. {sink.name} is a STREAM, but the query produces a TABLE."
        raise mistake(statement.target, message)
    result = stored_result(flow, selection.items, catalog, sink.name, statement.target)
    write_result(flow, _fitted(result, sink, statement.target), builder, sink.timestamp)
    text = format_statement(statement)
    query = _query(options, text, selection, builder, sink)
    topic = TopicRequest(name=sink.topic, partitions=sink.partitions)
    return Planned(sink=sink, query=query, topic=topic, warnings=_warnings(statement.query))


def _check_target(sink: Source, node: Node) -> None:
    refused = None
    if sink.kind == "TABLE":
        refused = "INSERT INTO can only be used to insert into a stream. {0} is a table."
    elif sink.is_read_only:
        refused = "Cannot insert into read-only stream: {0}"
    elif sink.headers:
        refused = "Cannot insert into {0} because it has header columns"
    if refused is not None:
        raise mistake(node, refused.format(sink.name))


def _fitted(result: Result, sink: Source, node: Node) -> Result:
    """The columns of the result as those of the sink, which they have to be by position, name and role."""
    key, value = _fitted_part(result.key, sink.key), _fitted_part(result.value, sink.value)
    if key is None or value is None:
        message = (
            "Incompatible schema between results and sink. Result schema is "
            f"{_schema(result.key_columns, result.value_columns)}, sink schema is {_schema(sink.key, sink.value)}. "
            f"Order and name the columns of SELECT like those of {sink.name}."
        )
        raise mistake(node, message)
    return Result(key, value)


def _fitted_part(
    given: Sequence[tuple[str, Expression]], wanted: Sequence[Column]
) -> tuple[tuple[str, Expression], ...] | None:
    if [name for name, _ in given] != [column.name for column in wanted]:
        return None
    pairs = [(value, column) for (_, value), column in zip(given, wanted, strict=True)]
    if any(conversion_cost(value.type, column.sql_type) is None for value, column in pairs):
        return None
    return tuple((column.name, cast(value, column.sql_type)) for value, column in pairs)


def _schema(key: Sequence[Column], value: Sequence[Column]) -> str:
    keys = [f"`{column.name}` {column.type} KEY" for column in key]
    return ", ".join([*keys, *(f"`{column.name}` {column.type}" for column in value)])


def plan_push(query: tree.Query, catalog: Catalog, facts: Facts, options: Options) -> tuple[QueryPlan, ...]:
    """SELECT ... EMIT: the last plan's rows go to the client."""
    selection = analysed(query, catalog, is_stored=False)
    given = Properties((), options)
    builder = _builder(options, given, "", selection.origins[0].source, facts)
    flow = flow_of(selection, catalog, builder, is_stored=False)
    columns = give_result(flow, typed_items(flow, selection.items, catalog), builder)
    return builder.finish(None, columns=columns, limit=None if query.limit is None else query.limit.value)


def sources_of(statement: Statement) -> tuple[str, ...]:
    """The names of the streams and tables that a statement reads."""
    match statement:
        case tree.Query():
            return tuple(dict.fromkeys(one.name.name for one in statement.sources))
        case CreateAsSelect() | InsertSelect():
            return sources_of(statement.query)
        case Explain(tree.Query() | CreateAsSelect() | InsertSelect() as subject):
            return sources_of(subject)
        case _:
            return ()
