"""CREATE OR REPLACE ... AS SELECT of a stream or table that exists. There are three ways, by `replace.mode` in WITH.

in-place       the new query goes on with the offsets and the state of the old one, if the state fits
restart        the old query ends, and the new one begins without state, at `replace.from`
side-by-side   the new query fills a topic of its own from `replace.from` on; once it has caught up, it takes the place
               of the old one
"""

from dataclasses import replace

import msgspec

from streams.catalog.state import Change, Replacement, put, put_query, put_source
from streams.model.plan import Query, QueryPlan
from streams.model.sources import Source
from streams.server.defining import PREFIXES, check_replacing, made, plan
from streams.server.errors import BadStatement
from streams.server.preparing import Prepared, Surroundings, cleanup_of, quoted_command
from streams.server.script import Replacing
from streams.sql.language.tree.expressions import StringLiteral
from streams.sql.language.tree.statements import CreateAsSelect, Property
from streams.sql.planning.queries import Planned
from streams.sql.planning.replacing import check_replacement

_TOPIC = "KAFKA_TOPIC"


def prepare_replacement(
    statement: CreateAsSelect, around: Surroundings, existing: Source, replacing: Replacing
) -> Prepared:
    """What CREATE OR REPLACE does."""
    check_replacing(around, is_replacing=True)
    old = _replaced_query(statement, around, existing)
    number = f"{PREFIXES[statement.kind]}_{existing.name}_{around.number}"
    match replacing.mode:
        case "restart":
            return _restarted(plan(statement, around, number, start=replacing.start), old)
        case "side-by-side":
            return _side_by_side(statement, around, existing, old, start=replacing.start)
        case _ if old is None:
            return made(plan(statement, around, number), *_new_source(existing, plan(statement, around, number)))
        case _:
            return _in_place(plan(statement, around, old.id), old, existing)


def _new_source(existing: Source, planned: Planned) -> tuple[Change, ...]:
    _check_fits(None, planned, existing)
    return (put_source(planned.sink),)


def _replaced_query(statement: CreateAsSelect, around: Surroundings, existing: Source) -> Query | None:
    name = existing.name
    if existing.kind != statement.kind.value:
        raise BadStatement(
            f"Cannot replace {existing.kind.lower()} `{name}` by a {statement.kind.value.lower()}: DROP it first."
        )
    if existing.is_read_only:
        raise BadStatement(f"Cannot replace `{name}`: it is a SOURCE. DROP it first.")
    pending = around.state.replacement(name)
    if pending is not None:
        raise BadStatement(
            f"Cannot replace `{name}`: query {pending.new_query} is catching up to replace it. Wait until it has, or "
            f"TERMINATE {pending.new_query} first."
        )
    writers = around.state.writers(name)
    others = [query.id for query in writers if query.id != existing.query_id]
    if others:
        raise BadStatement(
            f"Cannot replace `{name}`: more than one query writes to it. TERMINATE {', '.join(others)} first."
        )
    return writers[0] if writers else None


def _in_place(planned: Planned, old: Query, existing: Source) -> Prepared:
    _check_fits(old, planned, existing)
    before = {one.name: one for one in old.plans}
    query = msgspec.structs.replace(
        planned.query,
        plans=tuple(_with_state_of(one, before.get(one.name)) for one in planned.query.plans),
        generation=old.generation,
        is_paused=old.is_paused,
    )
    return Prepared(
        command_id=quoted_command(existing.kind, existing.name, "create"),
        message=f"Replaced query {query.id}: it goes on with its offsets and its state",
        changes=(put_source(planned.sink), put_query(query)),
        query_id=query.id,
        topics=(planned.topic, *query.topics),
        register=planned.sink,
        warnings=planned.warnings,
    )


def _with_state_of(new: QueryPlan, old: QueryPlan | None) -> QueryPlan:
    """State cannot be divided anew: the number of its partitions stays."""
    return new if old is None else msgspec.structs.replace(new, state_partitions=old.state_partitions)


def _check_fits(old: Query | None, planned: Planned, existing: Source) -> None:
    checked = check_replacement(planned.query if old is None else old, planned.query, existing, planned.sink)
    if not checked.fits:
        reasons = "\n".join(f"* {reason}" for reason in checked.reasons)
        raise BadStatement(
            f"Cannot upgrade data source `{existing.name}`: the new query cannot go on with the state of the old one.\n"
            f"{reasons}\n"
            "To build it anew, add to WITH: `replace.mode` = 'side-by-side' (the old one runs until the new one has "
            "caught up) or 'restart' (at once), and `replace.from` = 'earliest' or 'latest'."
        )


def _restarted(planned: Planned, old: Query | None) -> Prepared:
    prepared = made(planned, put_source(planned.sink))
    if old is None:
        return prepared
    cleanup = cleanup_of(old)
    return replace(
        prepared,
        message=f"Created query with ID {planned.query.id} in the place of {old.id}",
        changes=(Change("query", old.id), put(cleanup), *prepared.changes),
        awaited=(cleanup.name,),
    )


def _side_by_side(
    statement: CreateAsSelect, around: Surroundings, existing: Source, old: Query | None, *, start: str
) -> Prepared:
    name = existing.name
    readers = [query.id for query in around.state.readers(name)]
    if readers:
        raise BadStatement(
            f"Cannot replace `{name}` side by side: {', '.join(readers)} read the topic {existing.topic}, which the "
            "new query does not fill. Use `replace.mode` = 'restart', or TERMINATE them first."
        )
    topic = f"{existing.topic}-{around.number}"
    own = tuple(item for item in statement.properties if item.name != _TOPIC)
    named = replace(statement, properties=(*own, Property(_TOPIC, StringLiteral(topic))))
    planned = plan(named, around, f"{PREFIXES[statement.kind]}_{name}_{around.number}", start=start)
    if old is None:
        return made(planned, put_source(planned.sink))
    replacement = Replacement(name=name, old_query=old.id, new_query=planned.query.id, source=planned.sink)
    return replace(
        made(planned, put(replacement)),
        message=(
            f"Created query with ID {planned.query.id}; it fills topic {topic}, and replaces {old.id} once it has "
            "caught up"
        ),
    )
