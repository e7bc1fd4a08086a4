"""POST /inserts-stream: rows one after the other, each acknowledged while the request goes on."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from typing_extensions import override

from core_broker.service.web.asgi import Receive, Scope, Send
from streams.model.sources import Source
from streams.rest.bodies import read_object
from streams.rest.media_types import DELIMITED, JSON, choose
from streams.rest.row_formats import encode
from streams.rest.threads import Threads
from streams.server.errors import BadRequest, BadStatement, NotReady, ServerFailed, ServiceError
from streams.server.inserts import check_target, row_of, stored_name
from streams.server.properties import resolve_all
from streams.server.service import Service

log = logging.getLogger(__name__)

PATH: Final = "/inserts-stream"
_OFFERED: Final = (DELIMITED, JSON)


def router(service: Service, threads: Threads) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["inserts"])

    @routes.post(PATH, operation_id="insertRows")
    async def insert_rows(request: Request) -> Response:
        """Insert rows: a line with the target, then a line for each row. Rows are acknowledged as they are written."""
        if not service.is_ready:
            raise NotReady("KSQL is not yet ready to serve requests.")
        return InsertResponse(service, threads, media_type=choose(request.scope, _OFFERED))

    return routes


class InsertResponse(Response):
    """Reads rows, and acknowledges them at the same time. At most so many are on their way at once."""

    def __init__(self, service: Service, threads: Threads, *, media_type: bytes) -> None:
        super().__init__(media_type=media_type.decode())
        self._service = service
        self._threads = threads
        self._is_array = media_type == JSON
        self._room = asyncio.Semaphore(service.settings.ksql_inserts_in_flight_max)
        self._loop = asyncio.get_running_loop()
        self._acks: list[dict[str, Any]] = []
        self._has_news = asyncio.Event()
        self._sent = 0
        """Rows that have been handed to the producer, or could not be."""
        self._answered = 0
        self._has_failed = False
        self._is_read = False

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lines = _lines(receive, self._service)
        first = await anext(lines, None)
        source = self._target(first)
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await _send(send, b"[" if self._is_array else b"")
        try:
            async with asyncio.TaskGroup() as group:
                reader = group.create_task(self._read(lines, source))
                await self._acknowledge(send)
                reader.cancel()
        finally:
            await lines.aclose()
        await send({"type": "http.response.body", "body": b"]\n" if self._is_array else b"", "more_body": False})

    def _target(self, line: bytes | None) -> Source:
        if line is None:
            raise BadRequest('The request needs a line {"target": "..."} before the rows')
        document = read_object(line)
        target = document.get("target")
        if not isinstance(target, str) or not target:
            raise BadRequest('The first line needs a field "target" with the name of a stream or table')
        resolve_all(document.get("properties") or {}, self._service.settings)
        source = self._service.catalog.source(stored_name(target))
        if source is None:
            raise BadStatement(f"Cannot insert values into an unknown stream/table: {target}")
        check_target(source)
        return source

    async def _read(self, lines: AsyncGenerator[bytes, None], source: Source) -> None:
        """Hand rows on until the request ends or one of them is refused."""
        try:
            async for line in lines:
                await self._room.acquire()
                number, self._sent = self._sent, self._sent + 1
                await self._threads.for_rows(partial(self._insert, source, line, number))
                if self._has_failed:
                    break
        except ServiceError as error:
            self._sent += 1
            self._note(self._sent - 1, error)
        self._is_read = True
        self._has_news.set()

    def _insert(self, source: Source, line: bytes, number: int) -> None:
        """On a thread: writing a row may ask the registry."""

        def on_done(error: ServiceError | None) -> None:
            self._loop.call_soon_threadsafe(self._note, number, error)

        try:
            self._service.inserter.send(source, row_of(source, read_object(line)), on_done)
        except ServiceError as error:
            on_done(error)
        except Exception:
            log.exception("a row could not be inserted", extra={"target": source.name})
            on_done(ServerFailed("A bug in this service, see its log"))

    def _note(self, number: int, error: ServiceError | None) -> None:
        if error is None:
            self._acks.append({"status": "ok", "seq": number})
        else:
            self._has_failed = True
            failure = {"status": "error", "seq": number, "error_code": error.code, "message": error.message}
            self._acks.append(failure)
        self._has_news.set()

    async def _acknowledge(self, send: Send) -> None:
        """Send what has been noted, until all rows are answered or one has failed."""
        while not (self._is_read and self._answered == self._sent):
            await self._has_news.wait()
            self._has_news.clear()
            acks, self._acks = self._acks, []
            if acks:
                await _send(send, self._text(acks))
            self._answered += len(acks)
            for _ in acks:
                self._room.release()
            if any(ack["status"] == "error" for ack in acks):
                return

    def _text(self, acks: Sequence[dict[str, Any]]) -> bytes:
        if not self._is_array:
            return b"".join(encode(ack) + b"\n" for ack in acks)
        begin = b"" if self._answered == 0 else b","
        return begin + b",".join(encode(ack) for ack in acks)


async def _lines(receive: Receive, service: Service) -> AsyncGenerator[bytes, None]:
    """The lines of a body without an end; its parts may end anywhere. Raises BadRequest."""
    idle_seconds = service.settings.ksql_idle_connection_timeout_seconds
    line_max = service.settings.request_max_bytes
    rest, more = b"", True
    while more:
        try:
            async with asyncio.timeout(idle_seconds):
                message = await receive()
        except TimeoutError:
            raise BadRequest(f"No row has come for {idle_seconds} s (ksql.idle.connection.timeout.seconds)") from None
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
        *whole, rest = (rest + message.get("body", b"")).split(b"\n")
        if len(rest) > line_max:
            raise BadRequest(f"A row is longer than {line_max} bytes (request.max.bytes)")
        for line in whole:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
