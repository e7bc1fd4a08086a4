"""Reads without a consumer instance, as both APIs serve them: pages, and live streams."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from fastapi import Request, Response
from typing_extensions import override

from core_broker.service.web.asgi import Receive, Scope, Send
from rest_proxy.consume import rendering
from rest_proxy.consume.readers import Readers
from rest_proxy.consume.reads import Page, PageRequest, Pages, Start
from rest_proxy.consume.rendering import Rendering
from rest_proxy.consume.stream_frames import NDJSON, JsonLines, ServerSentEvents, parse_position
from rest_proxy.consume.streams import Stream, StreamRequest, Streams
from rest_proxy.errors import ProxyError, topic_not_found
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.routes.parameters import is_topic_name
from rest_proxy.settings import ProxySettings

_MAX_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999: what ISO 8601 can tell."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_RECORDS = 100_000
"""In one page, whatever the request asks for."""
_FEW = 50
"""Records that are written faster than a thread takes over."""
_LIVE_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Streams are neither kept nor held back by what stands between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a request says that reading begins."""

    offset: int | None = None
    timestamp: str | None = None
    beginning_or_end: str | None = None
    position: str | None = None
    last_event_id: str | None = None
    """Where the client lost its stream; it counts more than the rest, which the client says each time."""

    def start(self, default: str) -> Start:
        """The same, checked; `default` is beginning or end."""
        given = {
            "offset": self.offset,
            "timestamp": self.timestamp,
            "from": self.beginning_or_end,
            "position": self.position,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise ProxyError(400, f"Parameters {' and '.join(named)}: only one of them may say where to begin")
        if self.timestamp is not None:
            return Start(timestamp_ms=_milliseconds(self.timestamp))
        return Start(offset=self.offset, is_end=(self.beginning_or_end or default) == "end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a page or stream is to end."""

    timeout_ms: int | None = None
    max_bytes: int | None = None
    max_records: int | None = None
    until_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """How records are told."""

    rendering: Rendering
    decoders: tuple[Decoder, ...]
    """Those that must know the records' schemas before."""
    format: Format
    """Of values, for the count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks for."""

    topic: str
    partition: int | None
    origin: Origin
    limits: Limits
    isolation: str | None
    telling: Telling


class Reading:
    """Reads pages and opens streams for the routes."""

    def __init__(
        self,
        settings: ProxySettings,
        *,
        readers: Readers,
        streams: Streams,
        decoders: Mapping[Format, Decoder],
        metrics: ProxyMetrics,
    ) -> None:
        self._settings = settings
        self._readers = readers
        self._pages = Pages(readers)
        self._streams = streams
        self._metrics = metrics
        self._isolation = dict(settings.consumer_properties).get("isolation.level", "read_committed")
        self._decoders = decoders

    def v2(self, format_: Format) -> Telling:
        """Records as API v2 tells them."""
        decoder = self._decoders[format_]
        written = rendering.v2(decoder, decoder, is_plain=self._settings.api_v2_plain_records)
        return Telling(rendering=written, decoders=(decoder,) if format_.has_schema else (), format=format_)

    def v3(self, key_format: Format, value_format: Format) -> Telling:
        """Records as API v3 tells them."""
        key, value = self._decoders[key_format], self._decoders[value_format]
        written = rendering.v3(key, value, key_format=key_format, value_format=value_format)
        needed = {self._decoders[format_]: None for format_ in (key_format, value_format) if format_.has_schema}
        return Telling(rendering=written, decoders=tuple(needed), format=value_format)

    async def page(self, request: Request, asked: Asked, *, default_records: int) -> tuple[Page, bytes]:
        """A page of a partition, and its records as they are answered."""
        assert asked.partition is not None
        page = await self._pages.page(self._page_request(asked, default_records), is_gone=request.is_disconnected)
        told = asked.telling
        for decoder in told.decoders:
            await decoder.prepare(page.records)
        if len(page.records) <= _FEW:
            body = told.rendering.listed(page.records)
        else:
            body = await self._readers.lease().run(told.rendering.listed, page.records)
        self._metrics.add_consumed(told.format, "page", len(page.records))
        return page, body

    async def stream(self, asked: Asked, *, media_type: bytes) -> Response:
        """A stream of a partition, or of all partitions of a topic."""
        stream = await self._streams.opened(self._stream_request(asked))
        told = asked.telling
        frames = (JsonLines if media_type == NDJSON else ServerSentEvents)(told.rendering, stream.positions)
        count = partial(self._metrics.add_consumed, told.format, "stream")
        chunks = self._streams.chunks(stream, frames, decoders=told.decoders, count=count)
        return LiveResponse(stream, chunks, media_type=media_type.decode())

    def _page_request(self, asked: Asked, default_records: int) -> PageRequest:
        limits, settings = asked.limits, self._settings
        most_bytes = settings.consumer_request_max_bytes
        return PageRequest(
            topic=known_topic(asked.topic),
            partition=asked.partition or 0,
            start=asked.origin.start("beginning"),
            isolation_level=asked.isolation or self._isolation,
            timeout_ms=settings.consumer_request_timeout_ms if limits.timeout_ms is None else limits.timeout_ms,
            max_bytes=min(limits.max_bytes or most_bytes, most_bytes),
            max_records=min(limits.max_records or default_records, _MAX_RECORDS),
        )

    def _stream_request(self, asked: Asked) -> StreamRequest:
        limits = asked.limits
        start = asked.origin.start("beginning" if limits.until_end else "end")
        position = asked.origin.last_event_id or asked.origin.position
        return StreamRequest(
            topic=known_topic(asked.topic),
            partition=asked.partition,
            start=start,
            position=parse_position(position) if position else None,
            isolation_level=asked.isolation or self._isolation,
            max_records=limits.max_records,
            until_end=limits.until_end,
        )


class LiveResponse(Response):
    """Sends a stream for as long as the client listens; whatever happens, the stream is closed in the end."""

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
                leaving = tasks.create_task(_gone(receive))
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


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def known_topic(name: str) -> str:
    """A name that a topic may have, or 404."""
    if not is_topic_name(name):
        raise topic_not_found(name.encode(errors="replace").decode()[:249])
    return name


def _milliseconds(text: str) -> int:
    milliseconds = int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else _parsed(text)
    if milliseconds is None or not 0 <= milliseconds <= _MAX_TIMESTAMP_MS:
        told = text.encode(errors="replace").decode()[:80]
        raise ProxyError(
            400,
            f"Parameter timestamp {told!r} must be in milliseconds since 1970 or ISO 8601, as in 2026-01-31T12:00:00Z",
        )
    return milliseconds


def _parsed(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        return None
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
