"""Statements that end something: DROP, TERMINATE; and PAUSE and RESUME."""

from collections.abc import Iterable

import msgspec

from streams.catalog.state import Change, Cleanup, put, put_query, put_source
from streams.model.plan import Query
from streams.model.sources import Source
from streams.server.errors import BadStatement
from streams.server.preparing import Prepared, Surroundings, bare_command, cleanup_of
from streams.sql.language.tree.statements import ControlQuery, Drop, DroppedKind, QueryAction
from streams.sql.language.words import closest


def prepare_drop_type(statement: Drop, around: Surroundings) -> Prepared:
    """DROP TYPE."""
    name = statement.name.name
    command_id = bare_command("type", name, "drop")
    if around.state.type(name) is None:
        message = f"Type {name} does not exist."
        if not statement.if_exists:
            raise BadStatement(message)
        return Prepared(command_id=command_id, message=message)
    return Prepared(command_id=command_id, message=f"Dropped type '{name}'", changes=(Change("type", name),))


def prepare_drop(statement: Drop, around: Surroundings) -> Prepared:
    """DROP STREAM or TABLE: with the query that made it, but not as long as others use it."""
    name, kind = statement.name.name, statement.kind.value
    command_id = bare_command(kind, name, "drop")
    source = around.state.source(name)
    if source is None:
        message = f"Source `{name}` does not exist."
        if not statement.if_exists:
            raise BadStatement(f"{kind.capitalize()} {name} does not exist.{_meant(name, around)}")
        return Prepared(command_id=command_id, message=message)
    _check_kind(source, statement.kind)
    _check_unused(source, around)
    if statement.delete_topic:
        _check_topic(source, around)
    cleanups = _cleanups(source, around, delete_topic=statement.delete_topic)
    gone = [Change("query", query.id) for query in around.state.writers(name)]
    if around.state.replacement(name) is not None:
        gone.append(Change("replacement", name))
    return Prepared(
        command_id=command_id,
        message=f"Source `{name}` (topic: {source.topic}) was dropped.",
        changes=(Change("source", name), *gone, *map(put, cleanups)),
        awaited=tuple(cleanup.name for cleanup in cleanups),
    )


def _meant(name: str, around: Surroundings) -> str:
    similar = closest(name, [source.name for source in around.state.sources()])
    return f" Did you mean {similar}?" if similar else ""


def _check_kind(source: Source, kind: DroppedKind) -> None:
    if source.kind != kind.value:
        raise BadStatement(
            f"Incompatible data source type is {source.kind}, but statement was DROP {kind.value}. "
            f"Use DROP {source.kind} {source.name}."
        )


def _check_unused(source: Source, around: Surroundings) -> None:
    own = _own_queries(source, around)
    readers = [query for query in around.state.readers(source.name) if query.id not in own]
    writers = [query.id for query in around.state.writers(source.name) if query.id not in own]
    filled = sorted({query.writes for query in readers if _is_filled_by(query, around)})
    others = [query.id for query in readers if not _is_filled_by(query, around)]
    if not readers and not writers:
        return
    lines = [f"Cannot drop {source.name}."]
    if others:
        lines.append(f"The following queries read from this source: [{', '.join(others)}].")
    if writers:
        lines.append(f"The following queries write into this source: [{', '.join(writers)}].")
    if others or writers:
        lines.append(f"You need to terminate them before dropping {source.name}.")
    if filled:
        lines.append(f"The following streams and/or tables read from this source: [{', '.join(filled)}].")
        lines.append(f"You need to drop them before dropping {source.name}.")
    raise BadStatement("\n".join(lines))


def _is_filled_by(query: Query, around: Surroundings) -> bool:
    sink = around.state.source(query.writes)
    return sink is not None and sink.query_id == query.id


def _own_queries(source: Source, around: Surroundings) -> set[str]:
    """The query that made it, and one that is about to replace that."""
    pending = around.state.replacement(source.name)
    return {name for name in (source.query_id, pending.new_query if pending else None) if name is not None}


def _check_topic(source: Source, around: Surroundings) -> None:
    if source.is_read_only:
        raise BadStatement(f"Cannot delete topic of read-only source: {source.name}. Leave out DELETE TOPIC.")
    others = [one.name for one in around.state.sources() if one.topic == source.topic and one.name != source.name]
    if others:
        raise BadStatement(
            f"Refusing to delete topic. Found other data sources ({', '.join(others)}) using topic {source.topic}"
        )
    around.check_writable(source.topic)


def _cleanups(source: Source, around: Surroundings, *, delete_topic: bool) -> list[Cleanup]:
    topics = (source.topic,) if delete_topic else ()
    pending = around.state.replacement(source.name)
    found: list[Cleanup] = []
    for query in around.state.writers(source.name):
        is_new = pending is not None and query.id == pending.new_query
        # The topic of a replacement that will never take its place is of no use to anyone.
        own = (pending.source.topic,) if pending is not None and is_new else topics
        found.append(cleanup_of(query, topics=own, subjects=own))
    if topics and not any(set(topics) <= set(cleanup.topics) for cleanup in found):
        found.append(Cleanup(name=f"topic {source.topic}", topics=topics, subjects=topics))
    return found


# --- queries ---


def prepare_control(statement: ControlQuery, around: Surroundings) -> Prepared:
    """TERMINATE, PAUSE or RESUME of one persistent query, or of all."""
    chosen = _chosen(statement, around)
    action = statement.action
    name = "all" if statement.query_id is None else statement.query_id.name
    command_id = bare_command(action.value, name, "execute")
    if action is QueryAction.TERMINATE:
        return _terminated(command_id, chosen, around)
    is_paused = action is QueryAction.PAUSE
    word = "paused" if is_paused else "resumed"
    return Prepared(
        command_id=command_id,
        message=f"Query {word}." if statement.query_id is not None else f"All queries {word}.",
        changes=tuple(
            put_query(msgspec.structs.replace(query, is_paused=is_paused))
            for query in chosen
            if query.is_paused != is_paused
        ),
    )


def _chosen(statement: ControlQuery, around: Surroundings) -> list[Query]:
    if statement.query_id is None:
        return list(around.state.queries())
    name = statement.query_id.name
    query = around.state.query(name)
    if query is None:
        known: Iterable[str] = [one.id for one in around.state.queries()]
        similar = closest(name, list(known))
        hint = f" Did you mean {similar}?" if similar else " SHOW QUERIES lists those that there are."
        raise BadStatement(f"Unknown queryId: {name}.{hint}")
    return [query]


def _terminated(command_id: str, chosen: list[Query], around: Surroundings) -> Prepared:
    changes: list[Change] = []
    cleanups: list[Cleanup] = []
    for query in chosen:
        sink = around.state.source(query.writes)
        pending = around.state.replacement(query.writes)
        topics: tuple[str, ...] = ()
        if pending is not None and pending.new_query == query.id:
            changes.append(Change("replacement", pending.name))
            topics = (pending.source.topic,)
        elif sink is not None and sink.query_id == query.id:
            changes.append(put_source(msgspec.structs.replace(sink, query_id=None)))
        changes.append(Change("query", query.id))
        cleanups.append(cleanup_of(query, topics=topics, subjects=topics))
    return Prepared(
        command_id=command_id,
        message="Query terminated." if len(chosen) == 1 else f"{len(chosen)} queries terminated.",
        changes=(*changes, *map(put, cleanups)),
        awaited=tuple(cleanup.name for cleanup in cleanups),
    )
