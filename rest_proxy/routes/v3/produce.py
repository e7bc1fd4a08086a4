"""Produce in API v3: single records, streams in both directions, and batches."""

import asyncio
import codecs
import re
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Body, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from typing_extensions import override

from core_broker.service.web.asgi import Receive, Scope, Send
from core_broker.service.web.errors import envelope, status_error
from core_broker.service.web.media_types import negotiate, without_parameters
from rest_proxy.admin.cluster import KafkaCluster, unknown_topic_or_partition
from rest_proxy.callers.clients import Clients
from rest_proxy.callers.pool import ClientPool
from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.produce import ProduceBatch, ProducedBatch, ProducedRecord, ProduceRecord, RefusedRecord
from rest_proxy.produce.v3.batch import batch_result, read_batch
from rest_proxy.produce.v3.requests import parse_record
from rest_proxy.produce.v3.results import encode, failed_record
from rest_proxy.produce.v3.sender import Destination
from rest_proxy.produce.v3.stream import NextChunk, RecordStream, RecordStreams, StreamLimits
from rest_proxy.routes.bytes_routes import route_class
from rest_proxy.routes.media_types import JSON
from rest_proxy.routes.parameters import ClusterId, TopicName, is_topic_name
from rest_proxy.routes.produce_parameters import (
    Acks,
    Idempotence,
    body_error,
    check_content_encoding,
    requested_guarantees,
)
from rest_proxy.settings import ProxySettings

_JSON = JSON.decode()
_CHARSET = re.compile(rb""";\s*charset="?([^\s;"]+)""", re.IGNORECASE)
_PATH = re.compile(rb"/v3/clusters/[^/]+/topics/[^/]+/records/?")
_MULTI_STATUS = 207
_STATUS_ERRORS = (429, 503)
"""Errors of the proxy as a whole: load balancers and retrying clients look for them in the status."""


class V3Produce:
    """Answers produce requests."""

    def __init__(
        self, settings: ProxySettings, *, clients: ClientPool, cluster: KafkaCluster, streams: RecordStreams
    ) -> None:
        self._max_bytes = settings.request_max_bytes
        self._max_entries = settings.produce_batch_max_entries
        self._clients = clients
        self._cluster = cluster
        self._cluster_id: str | None = None
        self._streams = streams
        self._limits = StreamLimits(
            max_record_bytes=settings.request_max_bytes,
            idle_seconds=settings.streaming_connection_idle_timeout_ms / 1000,
            max_seconds=settings.streaming_connection_max_duration_ms / 1000,
            grace_seconds=settings.streaming_connection_max_duration_grace_period_ms / 1000,
        )

    async def answer(self, request: Request) -> Response:
        """Serve one request, whatever is wrong with it."""
        try:
            is_batch = request.scope["path"].endswith(":batch")
            return await (self._produce_batch(request) if is_batch else self._produce(request))
        except ProxyError as error:
            return _error_response(error)
        except HTTPException as error:  # The body is too long, or did not arrive in time.
            return _error_response(body_error(error))
        except ClientDisconnect:
            return status_error(400)  # There is no client to read it.

    async def _produce(self, request: Request) -> Response:
        destination = await self._destination(request)
        clients = self._clients.of(request.scope)
        if is_stream(request.scope, self._max_bytes):
            return _StreamResponse(self._stream(destination, clients))
        body = await request.body()
        if not body.strip():
            raise ProxyError(42206, "Request body is empty. Data is required.")
        try:
            record = parse_record(body)
        except ProxyError:
            # The body has several records, or a bad one: the stream finds out where each ends.
            return _StreamResponse(self._stream(destination, clients), body)
        sender = clients.v3_sender
        written = await sender.write(record, destination.topic)
        (result,) = await sender.send([written], destination)
        if not isinstance(result, ProxyError):
            return Response(encode(result), media_type=_JSON)
        if result.status in _STATUS_ERRORS:
            raise result
        return Response(encode(failed_record(result)), media_type=_JSON)

    async def _produce_batch(self, request: Request) -> Response:
        destination = await self._destination(request)
        sender = self._clients.of(request.scope).v3_sender
        batch = read_batch(await request.body(), self._max_entries)
        written = [await sender.write_text(entry, destination.topic) for entry in batch.entries]
        results = await sender.send(written, destination)
        return Response(encode(batch_result(batch.ids, results)), status_code=_MULTI_STATUS, media_type=_JSON)

    def _stream(self, destination: Destination, clients: Clients) -> RecordStream:
        return RecordStream(
            clients.v3_sender, destination, limits=self._limits, streams=self._streams, identity=clients.identity
        )

    async def _destination(self, request: Request) -> Destination:
        """Check the headers, the query and the path; raises ProxyError."""
        headers = dict(request.scope["headers"])
        check_content_encoding(headers)
        content_type = headers.get(b"content-type", JSON)
        if not _is_json(content_type):
            raise ProxyError(415, "HTTP 415 Unsupported Media Type")
        if not _has_known_charset(content_type):
            raise ProxyError(400, "The charset in the Content-Type is unknown: send the body in UTF-8")
        if not _accepts_json(headers.get(b"accept", b"*/*")):
            raise ProxyError(406, "HTTP 406 Not Acceptable")
        guarantees = requested_guarantees(request)
        cluster_id, topic = (unquote(request.path_params[name]) for name in ("cluster_id", "topic_name"))
        if cluster_id != self._cluster_id:
            await asyncio.to_thread(self._cluster.check, cluster_id)
            self._cluster_id = cluster_id
        if not is_topic_name(topic):
            raise unknown_topic_or_partition()
        return Destination(cluster_id, topic, guarantees)


class _StreamResponse(Response):
    """Sends results while the body is still being read; `body` is the whole body if it was read already."""

    def __init__(self, stream: RecordStream, body: bytes | None = None) -> None:
        super().__init__(media_type=_JSON)
        self._stream = stream
        self._whole_body = body

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", JSON)]}
        next_chunk = _received_chunks(receive) if self._whole_body is None else _single_chunk(self._whole_body)
        # A client that sent "Expect: 100-continue", as curl does, gets "100 Continue" when we start to read the body,
        # but only if the response has not begun by then.
        is_begun = all(name != b"expect" for name, _ in scope["headers"])
        if is_begun:
            await send(head)
        try:
            async for lines in self._stream.answers(next_chunk):
                if not is_begun:
                    await send(head)
                    is_begun = True
                await send({"type": "http.response.body", "body": lines, "more_body": True})
        except ClientDisconnect:
            return
        if not is_begun:
            await send(head)
        await send({"type": "http.response.body", "body": b""})


def router(settings: ProxySettings, *, clients: ClientPool, cluster: KafkaCluster, streams: RecordStreams) -> APIRouter:
    """The routes."""
    produce = V3Produce(settings, clients=clients, cluster=cluster, streams=streams)
    routes = APIRouter(tags=["v3 records"], route_class=route_class(produce.answer))

    @routes.post("/v3/clusters/{cluster_id}/topics/{topic_name}/records", **_RECORDS)
    async def produce_record(
        cluster_id: ClusterId,
        topic_name: TopicName,
        record: ProduceRecord,
        acks: Acks = "all",
        idempotence: Idempotence = None,
    ) -> None:
        """Write a record, or a stream of records.

        A chunked body (`Transfer-Encoding: chunked`) may be of any length and stay open: it consists of JSON objects
        one after the other. Each is answered with a line of JSON, in their order, as soon as it is acknowledged. The
        status is 200 even if a record fails: see the `error_code` of its line.
        """

    @routes.post("/v3/clusters/{cluster_id}/topics/{topic_name}/records:batch", **_BATCH)
    async def produce_record_batch(
        cluster_id: ClusterId,
        topic_name: TopicName,
        batch: Annotated[ProduceBatch, Body()],
        acks: Acks = "all",
        idempotence: Idempotence = None,
    ) -> None:
        """Write several records. Each has a result of its own."""

    return routes


def is_stream(scope: Scope, max_bytes: int) -> bool:
    """Whether the body of a request is a stream: each record is limited in size, not the body as a whole."""
    if scope["method"] != "POST" or not _PATH.fullmatch(scope["raw_path"]):
        return False
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return not length.isdigit() or int(length) > max_bytes


def _received_chunks(receive: Receive) -> NextChunk:
    """The body as it arrives; raises ClientDisconnect when the client has left."""
    is_over = False

    async def next_chunk() -> bytes | None:
        nonlocal is_over
        if is_over:
            return None
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        is_over = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    return next_chunk


def _single_chunk(body: bytes) -> NextChunk:
    chunks = iter([body])

    async def next_chunk() -> bytes | None:
        return next(chunks, None)

    return next_chunk


def _error_response(error: ProxyError) -> Response:
    return envelope(error.status, error.code, error.message, retry_after_seconds=error.retry_after_seconds)


# A client sends the same headers with each request: parsing them is cached.
@lru_cache(maxsize=64)
def _is_json(content_type: bytes) -> bool:
    return without_parameters(content_type) in (b"", JSON, b"application/octet-stream")


@lru_cache(maxsize=64)
def _has_known_charset(content_type: bytes) -> bool:
    found = _CHARSET.search(content_type)
    try:
        return found is None or codecs.lookup(found[1].decode("ascii")) is not None
    except (LookupError, ValueError):
        return False


@lru_cache(maxsize=64)
def _accepts_json(accept: bytes) -> bool:
    return negotiate(accept, (JSON,)) is not None


_RECORDS: dict[str, Any] = {
    "operation_id": "produceRecord",
    "response_model": None,
    "responses": {
        **errors(404, 406, 408, 415, 422, 429),
        200: {"model": ProducedRecord | RefusedRecord, "description": "The result of each record."},
    },
}
_BATCH: dict[str, Any] = {
    "operation_id": "produceRecordBatch",
    "status_code": _MULTI_STATUS,
    "response_model": None,
    "responses": {
        **errors(404, 406, 408, 413, 415, 422),
        _MULTI_STATUS: {"model": ProducedBatch, "description": "The result of each entry."},
    },
}
