"""Statements that define something: CREATE, ALTER, INSERT INTO ... SELECT."""

from typing import Final

import msgspec

from streams.catalog.state import Change, NamedType, put, put_query, put_source
from streams.errors import StatementError
from streams.model.plan import Query, TopicRequest
from streams.model.sources import Source
from streams.server.errors import BadStatement
from streams.server.preparing import Prepared, Surroundings, bare_command, quoted_command
from streams.sql.analysis.types import resolved_type
from streams.sql.language.checks.properties import by_name
from streams.sql.language.checks.property_values import text_of
from streams.sql.language.tree.statements import (
    AlterSource,
    CreateAsSelect,
    CreateSource,
    CreateType,
    InsertSelect,
    SourceKind,
)
from streams.sql.planning.queries import Planned, plan_create, plan_insert, sources_of
from streams.sql.planning.sources import alter, declare

PREFIXES: Final = {SourceKind.STREAM: "CSAS", SourceKind.TABLE: "CTAS"}
_REPLACE_SWITCH: Final = "ksql.create.or.replace.enabled"
_REPLICAS: Final = "ksql.sink.replicas"
_RETENTION: Final = "retention.ms"
_POLICY: Final = "cleanup.policy"


def prepare_source(statement: CreateSource, around: Surroundings) -> Prepared:
    """CREATE STREAM or TABLE over a topic."""
    check_replacing(around, is_replacing=statement.or_replace)
    name, kind = statement.name.name, statement.kind.value
    inferred = around.inferred(statement)
    declared = declare(statement, around.state, around.facts(inferred), around.options())
    if declared.exists:
        return _exists(name, kind, declared.warnings)
    around.check_free(declared.source.topic)
    if declared.topic.name not in around.partitions:
        around.check_writable(declared.topic.name)
    return Prepared(
        command_id=quoted_command(kind, name, "create"),
        message=f"{kind.capitalize()} {'replaced' if declared.replaces else 'created'}",
        changes=(put_source(declared.source),),
        topics=(declared.topic,),
        # What was inferred is at the registry already.
        register=declared.source if inferred is None else None,
        warnings=declared.warnings,
    )


def prepare_query(statement: CreateAsSelect, around: Surroundings) -> Prepared:
    """CREATE STREAM or TABLE ... AS SELECT of a name that is new."""
    check_replacing(around, is_replacing=statement.or_replace)
    name, kind = statement.name.name, statement.kind.value
    query_id = f"{PREFIXES[statement.kind]}_{name}_{around.number}"
    planned = plan(statement, around, query_id)
    if planned.exists:
        return _exists(name, kind, planned.warnings)
    _check_limit(around)
    return made(planned, put_source(planned.sink))


def plan(statement: CreateAsSelect, around: Surroundings, query_id: str, *, start: str | None = None) -> Planned:
    """The plan of a query, whose topic has the replicas and the retention of the topic that is read first."""
    first = _first_topic(statement, around)
    given = around.properties.get(_REPLICAS)
    found = None if first is None or given else around.topics.describe(first)
    replicas = int(given) if given else None if found is None else len(found.partitions[0].replicas)
    options = around.options(query_id, replicas=replicas, start=start)
    planned = plan_create(statement, around.state, around.facts(), options)
    if planned.exists:
        return planned
    around.check_writable(planned.topic.name)
    query = msgspec.structs.replace(planned.query, properties=dict(around.overridden))
    if "RETENTION_MS" in by_name(statement.properties):
        return msgspec.structs.replace(planned, query=query)
    return msgspec.structs.replace(planned, query=query, topic=_kept_as_long(planned.topic, first, around))


def made(planned: Planned, *changes: Change) -> Prepared:
    """What CREATE ... AS SELECT does."""
    sink, query = planned.sink, planned.query
    return Prepared(
        command_id=quoted_command(sink.kind, sink.name, "create"),
        message=f"Created query with ID {query.id}",
        changes=(*changes, put_query(query)),
        query_id=query.id,
        topics=(planned.topic, *query.topics),
        register=sink,
        warnings=planned.warnings,
    )


def prepare_insert(statement: InsertSelect, around: Surroundings) -> Prepared:
    """INSERT INTO ... SELECT."""
    given = by_name(statement.properties).get("QUERY_ID")
    named = None if given is None else text_of(given.value)
    query_id = named.upper() if named else f"INSERTQUERY_{around.number}"
    if around.state.query(query_id) is not None:
        raise StatementError(
            f"Query ID '{query_id}' already exists. Choose another one, or TERMINATE that query first.",
            start=statement.target.place.start,
            end=statement.target.place.end,
        )
    planned = plan_insert(statement, around.state, around.facts(), around.options(query_id))
    around.check_writable(planned.sink.topic)
    _check_limit(around)
    query: Query = msgspec.structs.replace(planned.query, properties=dict(around.overridden))
    return Prepared(
        command_id=bare_command("stream", planned.sink.name, "create"),
        message=f"Created query with ID {query.id}",
        changes=(put_query(query),),
        query_id=query.id,
        topics=query.topics,
        warnings=planned.warnings,
    )


def prepare_alter(statement: AlterSource, around: Surroundings) -> Prepared:
    """ALTER STREAM or TABLE ... ADD COLUMN."""
    source = alter(statement, around.state)
    return Prepared(
        command_id=bare_command(source.kind, source.name, "alter"),
        message=f"{source.kind.capitalize()} {source.name} altered.",
        changes=(put_source(source),),
        register=source,
    )


def prepare_type(statement: CreateType, around: Surroundings) -> Prepared:
    """CREATE TYPE."""
    name = statement.name.name
    found = around.state.type(name)
    command_id = bare_command("type", name, "create")
    if found is not None:
        message = f"Cannot register custom type '{name}' since it is already registered with type: {found}"
        if not statement.if_not_exists:
            raise BadStatement(f"{message}. DROP TYPE {name} first.")
        return Prepared(command_id=command_id, message=message, is_warning=True)
    kind = resolved_type(statement.type, around.state)
    return Prepared(
        command_id=command_id,
        message=f"Registered custom type with name '{name}' and SQL type {kind}",
        changes=(put(NamedType(name=name, type=str(kind))),),
    )


def check_replacing(around: Surroundings, *, is_replacing: bool) -> None:
    """Raise if OR REPLACE is switched off."""
    if is_replacing and around.properties.get(_REPLACE_SWITCH, "true").lower() != "true":
        raise BadStatement(f"CREATE OR REPLACE is switched off on this server ({_REPLACE_SWITCH})")


def _check_limit(around: Surroundings) -> None:
    most = around.settings.ksql_query_persistent_active_limit
    if len(list(around.state.queries())) >= most:
        raise BadStatement(
            f"Not executing statement(s) as it would cause the number of active, persistent queries to exceed the "
            f"configured limit of {most} (ksql.query.persistent.active.limit). TERMINATE queries first."
        )


def _exists(name: str, kind: str, warnings: tuple[str, ...]) -> Prepared:
    message = warnings[0] if warnings else f"`{name}` exists already."
    return Prepared(command_id=quoted_command(kind, name, "create"), message=message, is_warning=True)


def _first_topic(statement: CreateAsSelect, around: Surroundings) -> str | None:
    source: Source | None = around.state.source(next(iter(sources_of(statement)), ""))
    return None if source is None else source.topic


def _kept_as_long(request: TopicRequest, first: str | None, around: Surroundings) -> TopicRequest:
    """The topic keeps records at least for as long as the topic that is read first, unless it is only compacted."""
    is_deleted = "delete" in request.configs.get(_POLICY, "delete")
    if first is None or request.name in around.partitions or not is_deleted:
        return request
    times = [int(one) for one in (around.topics.config(first, _RETENTION), request.configs.get(_RETENTION)) if one]
    if not times:
        return request
    longest = -1 if -1 in times else max(times)
    return msgspec.structs.replace(request, configs={**request.configs, _RETENTION: str(longest)})
