"""Query parameters of reads, and the choice between pages and streams."""

from typing import Annotated, Literal

from fastapi import Depends, Header, Query, Request

from core_broker.service.web.media_types import negotiate
from rest_proxy.consume.stream_frames import NDJSON, SERVER_SENT_EVENTS
from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.routes.reading import Limits, Origin

_MAX_TIMEOUT_MS = 60_000
_MAX_OFFSET = 2**63 - 2
_NDJSON_ALIAS = b"application/ndjson"
_STREAMS = (NDJSON, SERVER_SENT_EVENTS, _NDJSON_ALIAS)

Offset = Annotated[int | None, Query(ge=0, le=_MAX_OFFSET, description="The first offset to read.", examples=[17])]
Timestamp = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Begin with the first record at or after this time: milliseconds since 1970, or ISO 8601.",
        examples=["2026-01-31T12:00:00Z"],
    ),
]
From = Annotated[
    Literal["beginning", "end"] | None,
    Query(alias="from", description="Begin with the first record, or with the next one that is written."),
]
Position = Annotated[
    str | None,
    Query(
        max_length=60_000,
        description="Streams: resume where another stream stopped, from its last event id or its last line:"
        " `partition:offset,…`. The header `Last-Event-ID` means the same, and takes precedence over all others.",
        examples=["0:17,1:5"],
    ),
]
LastEventId = Annotated[
    str | None,
    Header(
        max_length=60_000,
        description="Streams: the id of the last event received, which browsers send when they reconnect.",
        examples=["0:17"],
    ),
]
Timeout = Annotated[
    int | None,
    Query(ge=0, le=_MAX_TIMEOUT_MS, description="How long a page waits for its first record, in milliseconds."),
]
MaxBytes = Annotated[
    int | None,
    Query(ge=1, le=2**31 - 1, description="Most bytes of keys and values in a page; one record is always included."),
]
MaxRecords = Annotated[
    int | None, Query(ge=1, le=2**31 - 1, description="Most records in a page, or before a stream ends.")
]
Until = Annotated[
    Literal["end"] | None, Query(description="Streams: end with the last record that existed when the request arrived.")
]
IsolationLevel = Annotated[
    Literal["read_committed", "read_uncommitted"] | None,
    Query(description="Whether records of open and aborted transactions are included (read_uncommitted)."),
]
KeyFormat = Annotated[Format, Query(description="The format of keys.", examples=["string"])]
ValueFormat = Annotated[Format, Query(description="The format of values.", examples=["json"])]


def negotiate_read(accept: str, *offered: bytes) -> bytes:
    """The media type of the response; those of pages are preferred to those of streams. Raises 406."""
    chosen = negotiate(accept.encode("latin-1", "replace") or b"*/*", (*offered, *_STREAMS))
    if chosen is None:
        raise ProxyError(406, "HTTP 406 Not Acceptable")
    return NDJSON if chosen == _NDJSON_ALIAS else chosen


async def origin(
    *,
    offset: Offset = None,
    timestamp: Timestamp = None,
    from_: From = None,
    position: Position = None,
    last_event_id: LastEventId = None,
) -> Origin:
    """Where a read of a partition begins."""
    return Origin(
        offset=offset, timestamp=timestamp, beginning_or_end=from_, position=position, last_event_id=last_event_id
    )


async def topic_origin(
    request: Request,
    *,
    timestamp: Timestamp = None,
    from_: From = None,
    position: Position = None,
    last_event_id: LastEventId = None,
) -> Origin:
    """Where a read of a topic begins."""
    if "offset" in request.query_params:
        raise ProxyError(400, "Parameter offset: a topic has several partitions; use position=partition:offset,...")
    return Origin(timestamp=timestamp, beginning_or_end=from_, position=position, last_event_id=last_event_id)


async def stream_limits(*, max_records: MaxRecords = None, until: Until = None) -> Limits:
    """When a stream ends."""
    return Limits(max_records=max_records, until_end=until is not None)


async def v3_limits(
    *, timeout_ms: Timeout = None, max_bytes: MaxBytes = None, max_records: MaxRecords = None, until: Until = None
) -> Limits:
    """When a page or stream ends, with API v3's parameter names."""
    return Limits(timeout_ms=timeout_ms, max_bytes=max_bytes, max_records=max_records, until_end=until is not None)


async def v2_limits(
    *,
    timeout: Timeout = None,  # noqa: ASYNC109 - the API's word
    max_bytes: MaxBytes = None,
    max_records: MaxRecords = None,
    until: Until = None,
) -> Limits:
    """When a page or stream ends, with API v2's parameter names."""
    return Limits(timeout_ms=timeout, max_bytes=max_bytes, max_records=max_records, until_end=until is not None)


FromOrigin = Annotated[Origin, Depends(origin)]
FromTopicOrigin = Annotated[Origin, Depends(topic_origin)]
StreamLimits = Annotated[Limits, Depends(stream_limits)]
V2Limits = Annotated[Limits, Depends(v2_limits)]
V3Limits = Annotated[Limits, Depends(v3_limits)]
Accept = Annotated[str, Header(include_in_schema=False)]
