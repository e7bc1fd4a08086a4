"""Produce in API v2: `POST /topics/{topic}` and `POST /topics/{topic}/partitions/{partition}`."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.service.web.errors import status_error
from core_broker.service.web.media_types import negotiate, without_parameters
from rest_proxy.errors import ProxyError, partition_not_found, topic_not_found
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.models.errors import errors
from rest_proxy.models.v2.produce import BODIES, EXAMPLES, V2ProduceError, V2ProduceResponse
from rest_proxy.produce.producers import STRONGEST, Guarantees, Producers
from rest_proxy.produce.v2 import answer as answers
from rest_proxy.produce.v2.records import RecordWriter
from rest_proxy.produce.v2.request import parse
from rest_proxy.routes.bytes_routes import answered_by, refused_body
from rest_proxy.routes.media_types import EMBEDDED, V2
from rest_proxy.routes.parameters import is_topic_name
from rest_proxy.settings import ProxySettings

_ANSWERS = (*V2, *EMBEDDED)
_BODIES = re.compile(rb"application/vnd\.kafka(?:\.(binary|json|avro|protobuf|jsonschema))?(?:\.v[12])?\+json")
"""Confluent's names of version 2, and those of version 1 and without one that Karapace takes still."""
_BODIES_OF_BYTES = (b"", b"application/json", b"application/octet-stream")
_MAX_PARTITION = 2**31 - 1
_encode = msgspec.json.Encoder().encode

Topic = Annotated[str, Path(description="Name of the topic.", examples=["payments"])]
Partition = Annotated[int, Path(ge=0, le=_MAX_PARTITION, description="Number of the partition.", examples=[0])]
Acks = Annotated[
    Literal["all", "-1", "1", "0"],
    Query(description="Who must have a record before it is acknowledged: all replicas in sync, the leader, nobody."),
]
Idempotence = Annotated[
    bool | None,
    Query(description="Whether each record is in the log exactly once; true unless `acks` asks for less than all."),
]


class V2Response(JSONResponse):
    """Tells the OpenAPI document what answers are called unless another name is asked for."""

    media_type = V2[0].decode()


class V2Produce:
    """Answers produce requests."""

    def __init__(
        self, settings: ProxySettings, *, producers: Producers, encoders: Encoders, metrics: ProxyMetrics
    ) -> None:
        self._max_records = settings.produce_request_max_records
        self._producers = producers
        self._encoders = encoders
        self._metrics = metrics

    async def answer(self, request: Request) -> Response:
        """Serve one request, from its bytes to those of the answer."""
        headers = dict(request.scope["headers"])
        media_type = _answered_as(headers.get(b"accept", b"*/*"))
        if media_type is None:
            return _refusal(ProxyError(406, "HTTP 406 Not Acceptable"), V2Response.media_type)
        try:
            format_ = _format(headers)
            guarantees = _guarantees(request)
            body = await request.body()
            return await self._produce(request, body, format_=format_, guarantees=guarantees, media_type=media_type)
        except ProxyError as error:
            return _refusal(error, media_type)
        except HTTPException as error:  # The body is too long, or does not come.
            return _refusal(refused_body(error), media_type)
        except ClientDisconnect:
            return status_error(400)  # Nobody reads it.

    async def _produce(
        self, request: Request, body: bytes, *, format_: Format, guarantees: Guarantees, media_type: str
    ) -> Response:
        asked = parse(body, max_records=self._max_records)
        topic, partition = _place(request)
        writer = RecordWriter(format_, topic, partition)
        await writer.prepare(asked, self._encoders)
        records = await writer.write(asked.records)
        outcomes = await self._producers.send_all(records, guarantees)
        failed = answers.failures(outcomes)
        self._metrics.produced(format_, delivered=len(outcomes) - failed, failed=failed)
        if failed:
            outcomes = _named(outcomes, records, topic)
        offsets = answers.offsets(outcomes)
        first = outcomes[0]
        if failed == len(outcomes) and isinstance(first, ProxyError):
            return _refusal(first, media_type, offsets)
        answer = answers.Answer(offsets, writer.key_schema_id, writer.value_schema_id)
        return Response(_encode(answer), media_type=media_type)


def router(settings: ProxySettings, *, producers: Producers, encoders: Encoders, metrics: ProxyMetrics) -> APIRouter:
    """The routes."""
    produce = V2Produce(settings, producers=producers, encoders=encoders, metrics=metrics)
    routes = APIRouter(tags=["v2 produce"], route_class=answered_by(produce.answer))

    @routes.post("/topics/{topic}", **_document("produceToTopicV2"))
    async def produce_to_topic(topic: Topic, acks: Acks = "all", idempotence: Idempotence = None) -> None:
        """Write records to a topic; each has an outcome of its own, and a bad one does not stop the others."""

    @routes.post("/topics/{topic}/partitions/{partition}", **_document("produceToPartitionV2"))
    async def produce_to_partition(
        topic: Topic, partition: Partition, acks: Acks = "all", idempotence: Idempotence = None
    ) -> None:
        """Write records to a partition, save those that name another one themselves."""

    return routes


def _document(operation_id: str) -> dict[str, Any]:
    """What the OpenAPI document tells of an operation beside its parameters."""
    content = {
        media_type.decode(): {
            "schema": {"$ref": f"#/components/schemas/{BODIES[format_].__name__}"},
            "example": EXAMPLES[format_],
        }
        for media_type, format_ in EMBEDDED.items()
    }
    told = errors(404, 406, 408, 413, 415, 422, 429)
    return {
        "operation_id": operation_id,
        "response_model": None,
        "response_class": V2Response,
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
        "responses": {
            **{status: {**answer, "model": V2ProduceError} for status, answer in told.items()},
            200: {"model": V2ProduceResponse, "description": "What became of each record."},
        },
    }


def _format(headers: dict[bytes, bytes]) -> Format:
    """The format of keys and values, which the media type tells; binary if it does not."""
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ProxyError(415, "Bodies are read as they are, without a content-encoding")
    content_type = headers.get(b"content-type", b"")
    format_ = EMBEDDED.get(content_type) or _other_format(without_parameters(content_type))
    if format_ is None:
        raise ProxyError(415, "HTTP 415 Unsupported Media Type")
    return format_


def _other_format(media_type: bytes) -> Format | None:
    if media_type in _BODIES_OF_BYTES:
        return Format.BINARY
    found = _BODIES.fullmatch(media_type)
    return None if found is None else Format((found[1] or b"binary").decode())


@lru_cache(maxsize=64)
def _answered_as(accept: bytes) -> str | None:
    chosen = negotiate(accept, _ANSWERS)
    return None if chosen is None else chosen.decode()


def _guarantees(request: Request) -> Guarantees:
    if not request.scope["query_string"]:
        return STRONGEST
    query = request.query_params
    return Guarantees.parse(query.get("acks"), query.get("idempotence"))


def _place(request: Request) -> tuple[str, int | None]:
    """The topic and the partition that the path names; raises ProxyError for what no cluster can have."""
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


def _named(
    outcomes: Sequence[Delivery | ProxyError], records: Sequence[OutgoingRecord | ProxyError], topic: str
) -> list[Delivery | ProxyError]:
    return [
        answers.named(outcome, topic, record.partition if isinstance(record, OutgoingRecord) else None)
        for outcome, record in zip(outcomes, records, strict=True)
    ]


def _refusal(error: ProxyError, media_type: str, offsets: list[answers.PartitionOffset] | None = None) -> Response:
    body = _encode(answers.Refusal(error.code, error.message, offsets))
    retry = {"retry-after": str(error.retry_after_seconds)} if error.retry_after_seconds else None
    return Response(body, status_code=error.status, media_type=media_type, headers=retry)
