"""Produce in API v2: `POST /topics/{topic}` and `POST /topics/{topic}/partitions/{partition}`."""

import re
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from fastapi import APIRouter, Path, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from core_broker.service.web.errors import status_error
from core_broker.service.web.media_types import negotiate, without_parameters
from rest_proxy.callers.pool import ClientPool
from rest_proxy.errors import ProxyError, partition_not_found, topic_not_found
from rest_proxy.formats.formats import Format
from rest_proxy.models.errors import errors
from rest_proxy.models.v2.produce import BODIES, EXAMPLES, V2ProduceError, V2ProduceResponse
from rest_proxy.produce.v2.requests import parse
from rest_proxy.produce.v2.results import NothingWritten, PartitionOffset, ProduceFailure
from rest_proxy.produce.v2.sender import Destination
from rest_proxy.routes.bytes_routes import route_class
from rest_proxy.routes.media_types import EMBEDDED, V2, V2Response
from rest_proxy.routes.parameters import is_topic_name
from rest_proxy.routes.produce_parameters import (
    Acks,
    Idempotence,
    body_error,
    check_content_encoding,
    requested_guarantees,
)
from rest_proxy.settings import ProxySettings

_RESPONSES = (*V2, *EMBEDDED)
_BODIES = re.compile(rb"application/vnd\.kafka(?:\.(binary|json|avro|protobuf|jsonschema))?(?:\.v[12])?\+json")
"""Confluent's names of version 2, and those of version 1 and without a version, which Karapace still accepts."""
_BINARY_BODIES = (b"", b"application/json", b"application/octet-stream")
_MAX_PARTITION = 2**31 - 1
_encode = msgspec.json.Encoder().encode

Topic = Annotated[str, Path(description="Name of the topic.", examples=["payments"])]
Partition = Annotated[int, Path(ge=0, le=_MAX_PARTITION, description="Number of the partition.", examples=[0])]


class V2Produce:
    """Answers produce requests."""

    def __init__(self, settings: ProxySettings, clients: ClientPool) -> None:
        self._max_records = settings.produce_request_max_records
        self._clients = clients

    async def answer(self, request: Request) -> Response:
        """Serve one request, whatever is wrong with it."""
        headers = dict(request.scope["headers"])
        media_type = _response_type(headers.get(b"accept", b"*/*"))
        if media_type is None:
            return _error_response(ProxyError(406, "HTTP 406 Not Acceptable"), V2Response.media_type)
        try:
            format_ = _body_format(headers)
            guarantees = requested_guarantees(request)
            sender = self._clients.of(request.scope).v2_sender
            produce_request = parse(await request.body(), max_records=self._max_records)
            topic, partition = _topic_partition(request)
            result = await sender.send(produce_request, format_, Destination(topic, partition, guarantees))
            return Response(_encode(result), media_type=media_type)
        except NothingWritten as error:
            return _error_response(error, media_type, error.offsets)
        except ProxyError as error:
            return _error_response(error, media_type)
        except HTTPException as error:  # The body is too long, or did not arrive in time.
            return _error_response(body_error(error), media_type)
        except ClientDisconnect:
            return status_error(400)  # There is no client to read it.


def router(settings: ProxySettings, clients: ClientPool) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["v2 produce"], route_class=route_class(V2Produce(settings, clients).answer))

    @routes.post("/topics/{topic}", **_document("produceToTopicV2"))
    async def produce_to_topic(topic: Topic, acks: Acks = "all", idempotence: Idempotence = None) -> None:
        """Write records to a topic. Each has an outcome of its own, and a bad one does not stop the others."""

    @routes.post("/topics/{topic}/partitions/{partition}", **_document("produceToPartitionV2"))
    async def produce_to_partition(
        topic: Topic, partition: Partition, acks: Acks = "all", idempotence: Idempotence = None
    ) -> None:
        """Write records to a partition, except for those that name another one themselves."""

    return routes


def _document(operation_id: str) -> dict[str, Any]:
    """What the OpenAPI document says about an operation besides its parameters."""
    content = {
        media_type.decode(): {
            "schema": {"$ref": f"#/components/schemas/{BODIES[format_].__name__}"},
            "example": EXAMPLES[format_],
        }
        for media_type, format_ in EMBEDDED.items()
    }
    failures = errors(404, 406, 408, 413, 415, 422, 429)
    return {
        "operation_id": operation_id,
        "response_model": None,
        "response_class": V2Response,
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
        "responses": {
            **{status: {**failure, "model": V2ProduceError} for status, failure in failures.items()},
            200: {"model": V2ProduceResponse, "description": "The outcome of each record."},
        },
    }


def _body_format(headers: dict[bytes, bytes]) -> Format:
    """The format of keys and values, according to the media type; binary if it names none."""
    check_content_encoding(headers)
    content_type = headers.get(b"content-type", b"")
    format_ = EMBEDDED.get(content_type)
    if format_ is not None:
        return format_
    media_type = without_parameters(content_type)
    if media_type in _BINARY_BODIES:
        return Format.BINARY
    found = _BODIES.fullmatch(media_type)
    if found is None:
        raise ProxyError(415, "HTTP 415 Unsupported Media Type")
    return Format((found[1] or b"binary").decode())


@lru_cache(maxsize=64)
def _response_type(accept: bytes) -> str | None:
    chosen = negotiate(accept, _RESPONSES)
    return None if chosen is None else chosen.decode()


def _topic_partition(request: Request) -> tuple[str, int | None]:
    """The topic and the partition in the path; raises ProxyError for names and numbers that cannot exist."""
    parts = request.path_params
    topic = unquote(parts["topic"])
    if not is_topic_name(topic):
        raise topic_not_found(topic[:249])
    number = parts.get("partition")
    if number is None:
        return topic, None
    if not (number.isascii() and number.isdecimal()) or len(number) > 10:
        raise ProxyError(404, "HTTP 404 Not Found")
    if int(number) > _MAX_PARTITION:
        raise partition_not_found(topic, int(number))
    return topic, int(number)


def _error_response(error: ProxyError, media_type: str, offsets: list[PartitionOffset] | None = None) -> Response:
    body = _encode(ProduceFailure(error.code, error.message, offsets))
    retry = {"retry-after": str(error.retry_after_seconds)} if error.retry_after_seconds else None
    return Response(body, status_code=error.status, media_type=media_type, headers=retry)
