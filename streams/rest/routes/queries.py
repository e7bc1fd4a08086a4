"""POST /query and /query-stream: rows of SELECT and PRINT; /close-query ends a query from elsewhere."""

from functools import partial
from typing import Final

from anyio import CancelScope
from fastapi import APIRouter, Request, Response

from streams.rest.bodies import read_object, read_statements_body
from streams.rest.media_types import DELIMITED, JSON, V1_JSON, choose
from streams.rest.row_formats import Delimited, JsonArray, PlainLines, RowFormat, StreamedRows
from streams.rest.row_responses import RowResponse
from streams.rest.threads import Threads
from streams.server.errors import BadRequest
from streams.server.row_streams import Batch, RowStream
from streams.server.rows import finish, open_query
from streams.server.service import Service

_OF_QUERY: Final = (V1_JSON, JSON, DELIMITED)
_OF_QUERY_STREAM: Final = (DELIMITED, JSON, V1_JSON)


def router(service: Service, threads: Threads) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["queries"])

    @routes.post("/query", operation_id="runQuery")
    async def run_query(request: Request) -> Response:
        """Run one SELECT or PRINT, in ksqlDB's first format."""
        media_type = choose(request.scope, _OF_QUERY)
        row_format = Delimited() if media_type == DELIMITED else StreamedRows(media_type)
        return await _respond(request, row_format, service, threads)

    @routes.post("/query-stream", operation_id="streamQuery")
    async def stream_query(request: Request) -> Response:
        """Run one SELECT or PRINT; by default each row is a line."""
        if request.scope["http_version"] == "1.0":
            raise BadRequest("This endpoint needs HTTP/1.1 or HTTP/2")
        media_type = choose(request.scope, _OF_QUERY_STREAM)
        formats: dict[bytes, RowFormat] = {DELIMITED: Delimited(), JSON: JsonArray(), V1_JSON: StreamedRows()}
        return await _respond(request, formats[media_type], service, threads)

    @routes.post("/close-query", operation_id="closeQuery")
    async def close_query(request: Request) -> Response:
        """End a push query that another request has begun."""
        query_id = read_object(await request.body()).get("queryId")
        if not isinstance(query_id, str):
            raise BadRequest('The request needs a field "queryId"')
        if not await threads.for_rows(lambda: service.open_queries.close(query_id)):
            raise BadRequest(f"No query with id {query_id}")
        return Response(status_code=200)

    return routes


async def _respond(request: Request, row_format: RowFormat, service: Service, threads: Threads) -> Response:
    body = read_statements_body(await request.body(), service.settings)
    begin = partial(open_query, service, body.text, properties=body.properties, variables=body.variables)
    with CancelScope(shield=True):  # what has begun must be ended, even if the server stops meanwhile
        rows = await threads.for_rows(begin)
        first = await threads.for_rows(lambda: _take_first(service, rows)) if rows.kind == "pull" else None
    chosen = PlainLines() if rows.kind == "print" else row_format
    return RowResponse(service, rows, row_format=chosen, threads=threads, first=first)


def _take_first(service: Service, rows: RowStream) -> Batch | None:
    """The first rows of a pull query, so that an error can still have a status of its own."""
    try:
        return rows.take()
    except BaseException:
        finish(service, rows)
        raise
