"""GET /ws/query: the rows of one query as frames of a websocket."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from anyio import CancelScope
from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from streams.model.types import json_schema
from streams.rest.bodies import read_statements_body
from streams.rest.row_formats import encode, final_message, row_objects
from streams.rest.threads import Threads
from streams.server.errors import ServiceError
from streams.server.row_streams import Batch, RowStream
from streams.server.rows import finish, open_query
from streams.server.service import Service

PATH: Final = "/ws/query"
_NORMAL: Final = 1000
_UNACCEPTABLE: Final = 1003
_FAILED: Final = 1011
_LATER: Final = 1013
_REASON_BYTES_MAX: Final = 123


def router(service: Service, threads: Threads) -> APIRouter:
    """The route."""
    routes = APIRouter()

    @routes.websocket(PATH)
    async def stream_rows(socket: WebSocket) -> None:
        """Run the one SELECT or PRINT of the parameter `request`, a JSON object as the body of /query."""
        await socket.accept()
        try:
            body = read_statements_body(socket.query_params.get("request") or "", service.settings)
            begin = partial(open_query, service, body.text, properties=body.properties, variables=body.variables)
            with CancelScope(shield=True):
                rows = await threads.for_rows(begin)
        except ServiceError as error:
            await _fail(socket, error)
            return
        try:
            await _Session(socket, service, threads, rows).run()
        finally:
            with CancelScope(shield=True):
                await threads.for_rows(lambda: finish(service, rows))

    return routes


class _Session:
    """One websocket and its query."""

    def __init__(self, socket: WebSocket, service: Service, threads: Threads, rows: RowStream) -> None:
        self._socket = socket
        self._threads = threads
        self._rows = rows
        self._timeout_ms = service.settings.ksql_websocket_connection_max_timeout_ms

    async def run(self) -> None:
        """Send rows until there are none, the client goes, or the time is over."""
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._watch())
                try:
                    async with asyncio.timeout(self._timeout_ms / 1000 if self._timeout_ms else None):
                        await self._send_rows()
                finally:
                    watcher.cancel()
        except* TimeoutError:
            await self._close(_NORMAL, "The time is over (ksql.websocket.connection.max.timeout.ms)")
        except* WebSocketDisconnect:
            pass

    async def _watch(self) -> None:
        """End the query when the client has gone; what it sends has no meaning."""
        while (await self._socket.receive())["type"] != "websocket.disconnect":
            pass
        await self._threads.for_rows(self._rows.close)

    async def _send_rows(self) -> None:
        try:
            if self._rows.kind != "print":
                await self._socket.send_text(encode(_schema(self._rows)).decode())
            while (batch := await self._threads.for_rows(self._rows.take)) is not None:
                for frame in _frames(self._rows, batch):
                    await self._socket.send_text(frame)
        except ServiceError as error:
            await _fail(self._socket, error)
            return
        except (WebSocketDisconnect, RuntimeError):
            return  # the client has gone
        if (final := final_message(self._rows)) and not self._rows.is_closed():
            await self._socket.send_text(encode({"finalMessage": final}).decode())
        await self._close(_NORMAL, "done")

    async def _close(self, code: int, reason: str) -> None:
        try:
            await self._socket.close(code, reason)
        except (WebSocketDisconnect, RuntimeError):
            return  # it is closed already


async def _fail(socket: WebSocket, error: ServiceError) -> None:
    match error.status:
        case 429 | 503:
            code = _LATER
        case status if status < 500:
            code = _UNACCEPTABLE
        case _:
            code = _FAILED
    reason = error.message.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
    try:
        await socket.send_text(encode({"errorMessage": error.body()}).decode())
        await socket.close(code, reason)
    except (WebSocketDisconnect, RuntimeError):
        return  # the client has gone


def _schema(rows: RowStream) -> list[dict[str, Any]]:
    return [{"name": column.name, "schema": json_schema(column.sql_type)} for column in rows.columns]


def _frames(rows: RowStream, batch: Batch) -> Iterator[str]:
    if rows.kind == "print":
        yield from (line for (line,) in batch.rows)
    else:
        yield from (encode(row).decode() for row in row_objects(batch))
