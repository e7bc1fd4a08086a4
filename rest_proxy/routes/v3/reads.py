"""Reads in API v3: a partition as pages or as a stream, a topic as a stream."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Request, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.consume.reads import Page
from rest_proxy.consume.stream_frames import NDJSON, SERVER_SENT_EVENTS
from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.models.errors import errors
from rest_proxy.models.reads import EVENTS, NDJSON_V3, RecordList
from rest_proxy.routes.media_types import JSON
from rest_proxy.routes.parameters import PartitionId, TopicName
from rest_proxy.routes.read_parameters import (
    Accept,
    FromOrigin,
    FromTopicOrigin,
    IsolationLevel,
    KeyFormat,
    StreamLimits,
    V3Limits,
    ValueFormat,
    negotiate_read,
)
from rest_proxy.routes.reading import ReadRequest
from rest_proxy.routes.services import CheckCluster, ClusterLinks, RecordReading

_TOPIC = "/v3/clusters/{cluster_id}/topics/{topic_name}"
_DEFAULT_RECORDS = 1000
_ORIGINS = ("offset", "timestamp", "from", "position")
_UNKNOWN = 40403
"""API v3's code for a topic or partition that does not exist."""
_STREAMS = {NDJSON.decode(): NDJSON_V3, SERVER_SENT_EVENTS.decode(): EVENTS}
_ERRORS = errors(404, 406, 429)


_PAGE_OR_STREAM = "A page; or, if Accept asks for one, a stream that does not end."
_STREAM = "A stream that does not end. The records of each partition are in order."

routes = APIRouter(tags=["v3 records"], route_class=BoundedRoute)


@routes.get(
    _TOPIC + "/partitions/{partition_id}/records",
    operation_id="readKafkaRecords",
    response_class=Response,
    responses={**_ERRORS, 200: {"model": RecordList, "content": _STREAMS, "description": _PAGE_OR_STREAM}},
)
async def read_records(
    request: Request,
    reading: RecordReading,
    links: ClusterLinks,
    *,
    topic_name: TopicName,
    partition_id: PartitionId,
    origin: FromOrigin,
    limits: V3Limits,
    key_format: KeyFormat = Format.BINARY,
    value_format: ValueFormat = Format.BINARY,
    isolation_level: IsolationLevel = None,
    accept: Accept = "*/*",
) -> Response:
    """Records of a partition, from an offset or a time on; else pages start at the beginning, streams at the end.

    A page is returned as soon as there is a record, or empty when the time is up; `metadata.next` is the next one.
    A stream (Accept: application/x-ndjson or text/event-stream) sends each record as it is written.
    """
    media_type = negotiate_read(accept, JSON)
    read = ReadRequest(
        topic=topic_name,
        partition=partition_id,
        origin=origin,
        limits=limits,
        isolation=isolation_level,
        record_format=reading.v3(key_format, value_format),
    )
    with _v3_error_codes():
        if media_type != JSON:
            return await reading.stream(read, media_type=media_type)
        if origin.position is not None:
            raise ProxyError(400, "Parameter position is for streams only; a page begins at offset or timestamp")
        page, data = await reading.page(request, read, default_records=_DEFAULT_RECORDS)
    path = links.url("topics", topic_name, "partitions", partition_id, "records")
    return Response(_encode_page(request, path, page, data), media_type=JSON.decode())


@routes.get(
    _TOPIC + "/records",
    operation_id="streamKafkaRecords",
    response_class=Response,
    dependencies=[CheckCluster],
    responses={**_ERRORS, 200: {"content": _STREAMS, "description": _STREAM}},
)
async def stream_records(
    reading: RecordReading,
    *,
    topic_name: TopicName,
    origin: FromTopicOrigin,
    limits: StreamLimits,
    key_format: KeyFormat = Format.BINARY,
    value_format: ValueFormat = Format.BINARY,
    isolation_level: IsolationLevel = None,
    accept: Accept = "*/*",
) -> Response:
    """Records of all partitions of a topic as a stream, from a time on, or from now on.

    Partitions that are added later are read from their beginning.
    """
    media_type = negotiate_read(accept)
    read = ReadRequest(
        topic=topic_name,
        partition=None,
        origin=origin,
        limits=limits,
        isolation=isolation_level,
        record_format=reading.v3(key_format, value_format),
    )
    with _v3_error_codes():
        return await reading.stream(read, media_type=media_type)


@contextmanager
def _v3_error_codes() -> Iterator[None]:
    try:
        yield
    except ProxyError as error:
        if error.code not in (40401, 40402):
            raise
        raise ProxyError(_UNKNOWN, error.message) from None


def _encode_page(request: Request, path: str, page: Page, data: bytes) -> bytes:
    sent = request.url.query
    kept = [(key, value) for key, value in request.query_params.multi_items() if key not in _ORIGINS]
    metadata = {
        "self": f"{path}?{sent}" if sent else path,
        "next": f"{path}?{urlencode([('offset', page.next_offset), *kept])}",
    }
    return msgspec.json.encode(
        {
            "kind": "KafkaRecordList",
            "metadata": metadata,
            "data": msgspec.Raw(data),
            "beginning_offset": page.beginning_offset,
            "next_offset": page.next_offset,
            "end_offset": page.end_offset,
        }
    )
