"""Opens what gives rows to a client: SELECT with and without EMIT, and PRINT."""

import re
import secrets
from collections.abc import Mapping
from typing import Final

from streams.server.errors import BadRequest, BadStatement, NotReady, ServiceError
from streams.server.failures import mapped
from streams.server.printing import open_print
from streams.server.pull_queries import PullRows, check_lag
from streams.server.push_queries import PushRows
from streams.server.row_streams import RowStream
from streams.server.script import Written, read_statements
from streams.server.service import Service
from streams.server.transient import OpenQuery
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import PrintTopic
from streams.sql.language.variables import Variables
from streams.sql.planning.queries import plan_pull, plan_push

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_MAX: Final = 80


def open_query(
    service: Service, text: str, *, properties: Mapping[str, str], variables: Mapping[str, str]
) -> RowStream:
    """Begin the one query of a text; `finish` it in the end. Raises ServiceError."""
    if not service.is_ready:
        raise NotReady("KSQL is not yet ready to serve requests.")
    effective = service.effective(properties)
    substitutes = effective.get("ksql.variable.substitution.enable", "true") == "true"
    written = _only_statement(service, text, Variables(variables) if substitutes else None)
    with mapped(written):
        rows = _open(service, written, effective)
        try:
            service.open_queries.add(OpenQuery(id=rows.query_id, statement=written.text, kind=rows.kind, rows=rows))
        except BaseException:
            rows.close()
            raise
    return rows


def finish(service: Service, rows: RowStream) -> None:
    """End a query, and forget it."""
    service.open_queries.remove(rows.query_id)
    rows.close()


def _open(service: Service, written: Written, properties: Mapping[str, str]) -> RowStream:
    match written.statement:
        case Query(emit=None) as query:
            return _open_pull(service, query, properties)
        case Query() as query:
            service.open_queries.check_room("push")
            return _open_push(service, query, properties)
        case PrintTopic() as statement:
            service.open_queries.check_room("print")
            return open_print(service, statement)
        case statement:
            raise BadRequest(f"Statement type `{type(statement).__name__}' not supported for this resource")


def _open_pull(service: Service, query: Query, properties: Mapping[str, str]) -> RowStream:
    if not service.settings.ksql_pull_queries_enable:
        raise BadStatement(
            "Pull queries are disabled. Please set ksql.pull.queries.enable=true to enable pull queries, or add "
            "EMIT CHANGES for a push query."
        )
    room = service.settings.ksql_query_pull_max_concurrent_requests
    if service.open_queries.count("pull") >= room:
        raise ServiceError(
            f"Host is at concurrency limit for pull queries. Currently set to {room} concurrent requests "
            "(ksql.query.pull.max.concurrent.requests). Try again later.",
            code=42900,
            retry_after_seconds=1,
        )
    plan = plan_pull(query, service.catalog, service.facts(), service.options(properties))
    check_lag(service, plan, int(properties.get("ksql.query.pull.max.allowed.offset.lag", 2**63 - 1)))
    return PullRows(service, plan)


def _open_push(service: Service, query: Query, properties: Mapping[str, str]) -> RowStream:
    name = _ODD.sub("_", query.source.name.name)[:_NAME_MAX]
    query_id = f"transient_{name}_{secrets.randbits(63)}"
    options = service.options(properties, query_id=query_id)
    plans = plan_push(query, service.catalog, service.facts(), options)
    trigger_ms = int(properties.get("ksql.query.trigger.ms", service.settings.ksql_query_trigger_ms))
    rows = PushRows(service, query_id, plans, trigger_ms=trigger_ms)
    rows.start()
    return rows


def _only_statement(service: Service, text: str, variables: Variables | None) -> Written:
    """The only statement of a text. Raises BadStatement."""
    found: Written | None = None
    for written in read_statements(text, variables, service.catalog):
        if found is not None:
            raise BadStatement("Expected exactly one KSQL statement; found more than one instead", text)
        found = written
    assert found is not None, "a text without statements is refused"
    return found
