"""Responses whose rows come from a query that goes on while they are sent."""

import asyncio
import logging
from typing import Final

from anyio import CancelScope
from fastapi import Response
from typing_extensions import override

from core_broker.service.web.asgi import Receive, Scope, Send
from streams.rest.row_formats import RowFormat
from streams.rest.threads import Threads
from streams.server.errors import ServerFailed, ServiceError
from streams.server.row_streams import Batch, RowStream
from streams.server.rows import finish
from streams.server.service import Service

log = logging.getLogger(__name__)

_BUG: Final = "The query failed because of a bug in this service, see its log"


class RowResponse(Response):
    """Sends rows as they come; the client reads as slowly as it likes, which slows the query down."""

    def __init__(
        self,
        service: Service,
        rows: RowStream,
        *,
        row_format: RowFormat,
        threads: Threads,
        first: Batch | None = None,
    ) -> None:
        """`first` are rows of a pull query that have been taken already."""
        super().__init__(media_type=row_format.media_type.decode())
        self._service = service
        self._rows = rows
        self._format = row_format
        self._threads = threads
        self._first = first

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._watch(receive))
                await self._send_rows(send)
                watcher.cancel()
        finally:
            with CancelScope(shield=True):
                await self._threads.for_rows(lambda: finish(self._service, self._rows))

    async def _watch(self, receive: Receive) -> None:
        """End the query when the client has gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        await self._threads.for_rows(self._rows.close)

    async def _send_rows(self, send: Send) -> None:
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        data = self._format.begin(self._rows)
        if self._first is not None:
            data += self._format.write(self._first)
        rows: RowStream | None = self._rows
        if data:
            await _send_part(send, data)
        try:
            await self._send_rest(send)
        except ServiceError as error:
            await _send_part(send, self._format.fail(error))
            rows = None
        except Exception:
            log.exception("a query failed", extra={"query": self._rows.query_id})
            await _send_part(send, self._format.fail(ServerFailed(_BUG)))
            rows = None
        await send({"type": "http.response.body", "body": self._format.end(rows), "more_body": False})

    async def _send_rest(self, send: Send) -> None:
        if self._rows.kind == "pull" and self._first is None:
            return  # there was not even a first row
        while (data := await self._threads.for_rows(self._take)) is not None:
            if data:
                await _send_part(send, data)

    def _take(self) -> bytes | None:
        """The next rows as they are sent: writing them takes long enough to do it on the thread."""
        batch = self._rows.take()
        return None if batch is None else self._format.write(batch)


async def _send_part(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
