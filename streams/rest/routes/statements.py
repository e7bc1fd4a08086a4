"""POST /ksql: statements; and /ksql/terminate, which removes everything."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from streams.model.types import quoted
from streams.rest.bodies import read_object, read_statements_body
from streams.rest.media_types import JSON, V1_JSON, choose
from streams.rest.row_formats import encode
from streams.rest.threads import Threads
from streams.server.errors import BadRequest
from streams.server.service import Service

_OFFERED: Final = (V1_JSON, JSON)
_PATTERNS_MAX: Final = 1000


def router(service: Service, threads: Threads) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["statements"])

    @routes.post("/ksql", operation_id="executeStatements")
    async def execute_statements(request: Request) -> Response:
        """Carry out statements, all but SELECT and PRINT; an entity for each that has one."""
        media_type = choose(request.scope, _OFFERED)
        body = read_statements_body(await request.body(), service.settings)
        execute = partial(
            service.execute,
            body.text,
            properties=body.properties,
            variables=body.variables,
            sequence=body.sequence,
        )
        entities = await threads.for_statements(execute)
        return Response(encode(entities), media_type=media_type.decode())

    @routes.post("/ksql/terminate", operation_id="terminateCluster")
    async def terminate_cluster(request: Request) -> Response:
        """End all queries and drop all streams and tables; those whose topics are named, with their topics."""
        media_type = choose(request.scope, _OFFERED)
        patterns = _patterns(read_object(await request.body() or b"{}"))
        entities = await threads.for_statements(lambda: _drop_everything(service, patterns))
        return Response(encode(entities), media_type=media_type.decode())

    return routes


def _patterns(document: Mapping[str, Any]) -> list[re.Pattern[str]]:
    given = document.get("deleteTopicList") or []
    if not isinstance(given, list) or len(given) > _PATTERNS_MAX:
        raise BadRequest(f"deleteTopicList must be a list of at most {_PATTERNS_MAX} names or patterns")
    try:
        return [re.compile(str(pattern)) for pattern in given]
    except re.error as error:
        raise BadRequest(f"Invalid pattern in deleteTopicList: {error}") from error


def _drop_everything(service: Service, patterns: list[re.Pattern[str]]) -> list[Any]:
    entities = service.execute("TERMINATE ALL;", properties={}, variables={}, sequence=None)
    for source in list(service.catalog.sources()):
        is_deleted = not source.is_read_only and any(pattern.fullmatch(source.topic) for pattern in patterns)
        statement = f"DROP {source.kind} IF EXISTS {quoted(source.name)}{' DELETE TOPIC' if is_deleted else ''};"
        entities += service.execute(statement, properties={}, variables={}, sequence=None)
    return entities
