"""Reads without a consumer instance, for both APIs: pages and live streams."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from fastapi import Request, Response
from typing_extensions import override

from core_broker.service.web.asgi import Receive, Scope, Send
from rest_proxy.callers.clients import Clients
from rest_proxy.consume.reads import Page, PageRequest, Pages, Start
from rest_proxy.consume.rendering import RecordRenderer, v2_renderer, v3_renderer
from rest_proxy.consume.stream_frames import NDJSON, JsonLines, ServerSentEvents, parse_position
from rest_proxy.consume.streams import Stream, StreamRequest, Streams
from rest_proxy.errors import ProxyError, topic_not_found
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from rest_proxy.formats.timestamps import MAX_TIMESTAMP_MS, parse_timestamp
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.routes.parameters import is_topic_name
from rest_proxy.settings import ProxySettings

_MAX_RECORDS = 100_000
"""Most records in one page, whatever the request asks for."""
_FEW = 50
"""Rendering up to this many records takes less time than handing them to a thread."""
_LIVE_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Keep intermediaries from caching or buffering streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where reading begins, as the request says."""

    offset: int | None = None
    timestamp: str | None = None
    beginning_or_end: str | None = None
    position: str | None = None
    last_event_id: str | None = None
    """Where the client lost its stream; takes precedence, since browsers repeat the other parameters on reconnect."""

    def start(self, default: str) -> Start:
        """Check the parameters; `default` is beginning or end. Raises ProxyError."""
        given = {
            "offset": self.offset,
            "timestamp": self.timestamp,
            "from": self.beginning_or_end,
            "position": self.position,
        }
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise ProxyError(400, f"Parameters {' and '.join(names)}: only one of them may say where to begin")
        if self.timestamp is not None:
            milliseconds = parse_timestamp(self.timestamp)
            if milliseconds is None or not 0 <= milliseconds <= MAX_TIMESTAMP_MS:
                shown = self.timestamp.encode(errors="replace").decode()[:80]
                raise ProxyError(
                    400,
                    f"Parameter timestamp {shown!r} must be in milliseconds since 1970 or ISO 8601,"
                    " as in 2026-01-31T12:00:00Z",
                )
            return Start(timestamp_ms=milliseconds)
        return Start(offset=self.offset, is_end=(self.beginning_or_end or default) == "end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a page or stream ends."""

    timeout_ms: int | None = None
    max_bytes: int | None = None
    max_records: int | None = None
    until_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat:
    """How records are rendered in the response."""

    renderer: RecordRenderer
    decoders: tuple[Decoder, ...]
    """Those that must fetch the schemas of the records first."""
    format: Format
    """The format of values, for the metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A request for a page or a stream."""

    topic: str
    partition: int | None
    origin: Origin
    limits: Limits
    isolation: str | None
    record_format: RecordFormat


class Reading:
    """Reads pages and opens streams for the routes."""

    def __init__(
        self,
        settings: ProxySettings,
        *,
        streams: Streams,
        metrics: ProxyMetrics,
        clients: Clients,
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._readers = clients.readers
        self._pages = Pages(clients.readers)
        self._streams = streams
        self._metrics = metrics
        self._isolation = dict(settings.consumer_properties).get("isolation.level", "read_committed")
        self._decoders = clients.decoders

    def by(self, clients: Clients) -> "Reading":
        """The same with the clients of a caller."""
        if clients is self._clients:
            return self
        return Reading(self._settings, streams=self._streams, metrics=self._metrics, clients=clients)

    def v2(self, format_: Format) -> RecordFormat:
        """Records as in API v2."""
        decoder = self._decoders[format_]
        renderer = v2_renderer(decoder, decoder, is_plain=self._settings.api_v2_plain_records)
        return RecordFormat(renderer=renderer, decoders=(decoder,) if format_.has_schema else (), format=format_)

    def v3(self, key_format: Format, value_format: Format) -> RecordFormat:
        """Records as in API v3."""
        key, value = self._decoders[key_format], self._decoders[value_format]
        renderer = v3_renderer(key, value, key_format=key_format, value_format=value_format)
        needed = {self._decoders[format_]: None for format_ in (key_format, value_format) if format_.has_schema}
        return RecordFormat(renderer=renderer, decoders=tuple(needed), format=value_format)

    async def page(self, request: Request, read: ReadRequest, *, default_records: int) -> tuple[Page, bytes]:
        """Read a page of a partition; also returns its records as JSON."""
        assert read.partition is not None
        limits, settings = read.limits, self._settings
        max_bytes = settings.consumer_request_max_bytes
        page_request = PageRequest(
            topic=check_topic_name(read.topic),
            partition=read.partition,
            start=read.origin.start("beginning"),
            isolation_level=read.isolation or self._isolation,
            timeout_ms=settings.consumer_request_timeout_ms if limits.timeout_ms is None else limits.timeout_ms,
            max_bytes=min(limits.max_bytes or max_bytes, max_bytes),
            max_records=min(limits.max_records or default_records, _MAX_RECORDS),
        )
        page = await self._pages.page(page_request, is_gone=request.is_disconnected)
        format_ = read.record_format
        for decoder in format_.decoders:
            await decoder.prepare(page.records)
        if len(page.records) <= _FEW:
            body = format_.renderer.render_list(page.records)
        else:
            body = await self._readers.lease().run(format_.renderer.render_list, page.records)
        self._metrics.add_consumed(format_.format, "page", len(page.records))
        return page, body

    async def stream(self, read: ReadRequest, *, media_type: bytes) -> Response:
        """Stream a partition, or all partitions of a topic."""
        limits, origin = read.limits, read.origin
        start = origin.start("beginning" if limits.until_end else "end")
        position = origin.last_event_id or origin.position
        stream_request = StreamRequest(
            topic=check_topic_name(read.topic),
            partition=read.partition,
            start=start,
            position=parse_position(position) if position else None,
            isolation_level=read.isolation or self._isolation,
            max_records=limits.max_records,
            until_end=limits.until_end,
        )
        stream = await self._streams.open(stream_request, self._readers)
        format_ = read.record_format
        frames = (JsonLines if media_type == NDJSON else ServerSentEvents)(format_.renderer, stream.positions)
        count = partial(self._metrics.add_consumed, format_.format, "stream")
        chunks = self._streams.chunks(stream, frames, decoders=format_.decoders, count=count)
        return LiveResponse(stream, chunks, media_type=media_type.decode())


class LiveResponse(Response):
    """Sends a stream until it ends or the client leaves; whatever happens, it closes the stream."""

    def __init__(self, stream: Stream, chunks: AsyncGenerator[bytes, None], *, media_type: str) -> None:
        super().__init__(media_type=media_type, headers=_LIVE_HEADERS)
        del self.headers["content-length"]
        self._stream = stream
        self._chunks = chunks

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send(send))
                leaving = tasks.create_task(_until_disconnected(receive))
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
                sending.cancel()
                leaving.cancel()
        finally:
            self._stream.close()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def check_topic_name(name: str) -> str:
    """Raise 404 for a name that no topic can have."""
    if not is_topic_name(name):
        raise topic_not_found(name.encode(errors="replace").decode()[:249])
    return name
