"""Reads in API v2: a partition as pages (as in Redpanda) or as a stream, a topic as a stream."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.consume.stream_frames import NDJSON, SERVER_SENT_EVENTS
from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.models.errors import errors
from rest_proxy.models.reads import EVENTS, NDJSON_V2, V2_PAGE, V2ReadRecord
from rest_proxy.routes.media_types import EMBEDDED, V2
from rest_proxy.routes.parameters import PartitionId, TopicName
from rest_proxy.routes.read_parameters import (
    Accept,
    FromOrigin,
    FromTopicOrigin,
    IsolationLevel,
    StreamLimits,
    V2Limits,
    negotiate_read,
)
from rest_proxy.routes.reading import ReadRequest
from rest_proxy.routes.services import RecordReading

_DEFAULT_RECORDS = 10_000
_ORIGINS = ("offset", "timestamp", "from")
_STREAMS = {NDJSON.decode(): NDJSON_V2, SERVER_SENT_EVENTS.decode(): EVENTS}
_PAGES = {media_type.decode(): V2_PAGE for media_type in (*EMBEDDED, *V2)}
_ERRORS = errors(404, 406, 429)

StreamFormat = Annotated[
    Format, Query(alias="format", description="Streams: the format of keys and values; pages use Accept.")
]


_PAGE_OR_STREAM = "A page, with records in the format of its media type; or a stream, if Accept asks for one."
_STREAM = "A stream that does not end. The records of each partition are in order."

routes = APIRouter(tags=["v2 records"], route_class=BoundedRoute)


@routes.get(
    "/topics/{topic}/partitions/{partition}/records",
    operation_id="readRecordsV2",
    response_class=Response,
    responses={
        **_ERRORS,
        200: {"model": list[V2ReadRecord], "content": {**_PAGES, **_STREAMS}, "description": _PAGE_OR_STREAM},
    },
)
async def read_records(
    request: Request,
    reading: RecordReading,
    *,
    topic: TopicName,
    partition: PartitionId,
    origin: FromOrigin,
    limits: V2Limits,
    stream_format: StreamFormat = Format.BINARY,
    isolation_level: IsolationLevel = None,
    accept: Accept = "*/*",
) -> Response:
    """Records of a partition, from an offset or a time on; streams begin at the end by default.

    A page is returned as soon as there is a record, or empty when the time is up; its `Link` header has the next.
    """
    media_type = negotiate_read(accept, *EMBEDDED, *V2)
    is_page = media_type in EMBEDDED or media_type in V2
    read = ReadRequest(
        topic=topic,
        partition=partition,
        origin=origin,
        limits=limits,
        isolation=isolation_level,
        record_format=reading.v2(EMBEDDED.get(media_type, Format.BINARY) if is_page else stream_format),
    )
    if not is_page:
        return await reading.stream(read, media_type=media_type)
    # A page must say where it begins, as in Redpanda.
    if origin.position is not None:
        raise ProxyError(400, "Parameter position is for streams only; a page begins at offset or timestamp")
    if origin.offset is None and origin.timestamp is None and origin.beginning_or_end is None:
        raise ProxyError(40002, "Missing mandatory parameter 'offset'")
    page, body = await reading.page(request, read, default_records=_DEFAULT_RECORDS)
    kept = [(key, value) for key, value in request.query_params.multi_items() if key not in _ORIGINS]
    link = f'<{request.url.path}?{urlencode([("offset", page.next_offset), *kept])}>; rel="next"'
    return Response(body, media_type=media_type.decode(), headers={"link": link})


@routes.get(
    "/topics/{topic}/records",
    operation_id="streamRecordsV2",
    response_class=Response,
    responses={**_ERRORS, 200: {"content": _STREAMS, "description": _STREAM}},
)
async def stream_records(
    reading: RecordReading,
    *,
    topic: TopicName,
    origin: FromTopicOrigin,
    limits: StreamLimits,
    stream_format: StreamFormat = Format.BINARY,
    isolation_level: IsolationLevel = None,
    accept: Accept = "*/*",
) -> Response:
    """Records of all partitions of a topic as a stream, from a time on, or from now on.

    Partitions that are added later are read from their beginning.
    """
    media_type = negotiate_read(accept)
    read = ReadRequest(
        topic=topic,
        partition=None,
        origin=origin,
        limits=limits,
        isolation=isolation_level,
        record_format=reading.v2(stream_format),
    )
    return await reading.stream(read, media_type=media_type)
