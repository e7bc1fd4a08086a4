"""Consumer instances of API v2: `/consumers/{group}`."""

import asyncio
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, TypeAdapter, ValidationError

from core_broker.client.consumer import TopicPartition
from core_broker.client.group_consumer import BEGINNING, END, Commit
from core_broker.service.web.connections import get_connection
from core_broker.service.web.errors import envelope
from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.media_types import negotiate
from core_broker.service.web.paths import IS_HEAD, Segment
from rest_proxy.consume.instances import errors as instance_errors
from rest_proxy.consume.instances.instance import Instance
from rest_proxy.consume.instances.of_caller import CallerInstances
from rest_proxy.errors import ProxyError, too_large
from rest_proxy.models.errors import errors
from rest_proxy.models.v2.consumers import (
    V2Commits,
    V2CommittedOffset,
    V2CommittedOffsets,
    V2ConsumedRecord,
    V2CreatedInstance,
    V2CreateInstance,
    V2Partition,
    V2Partitions,
    V2Positions,
    V2SubscribedTopics,
    V2Subscription,
)
from rest_proxy.routes.media_types import EMBEDDED, V2
from rest_proxy.routes.services import ConsumerInstances, own_url

_MAX_GET_BODY_BYTES = 1024 * 1024
_GET_BODY_SECONDS = 10.0
_JSON = V2[0].decode()
_partitions = TypeAdapter(V2Partitions)

Group = Annotated[Segment, Path(description="The name of the consumer group.", examples=["billing"])]
Name = Annotated[Segment, Path(description="The name of the instance in its group.", examples=["reader-1"])]
Timeout = Annotated[
    int | None,
    Query(
        ge=-1,
        le=2**31 - 1,
        description="How long to wait for records, in milliseconds (at most ten minutes); left out or -1: the "
        "instance's own time-out, counted from when the group has assigned partitions.",
        examples=[1000],
    ),
]
MaxBytes = Annotated[
    int | None,
    Query(
        ge=-1,
        le=2**63 - 1,
        description="Most bytes of keys and values in the response; one record is returned whatever its size.",
        examples=[1_000_000],
    ),
]


_RECORDS_SCHEMA = {"type": "array", "items": {"$ref": f"#/components/schemas/{V2ConsumedRecord.__name__}"}}
_RECORDS_CONTENT = {media_type.decode(): {"schema": _RECORDS_SCHEMA} for media_type in (*EMBEDDED, V2[0])}

routes = APIRouter(prefix="/consumers/{group}", tags=["v2 consumers"], route_class=BoundedRoute)


def _reads(operation_id: str, model: Any, *statuses: int) -> dict[str, Any]:
    return {"operation_id": operation_id, "responses": {**errors(*statuses), 200: {"model": model}}}


def _writes(operation_id: str, *statuses: int) -> dict[str, Any]:
    responses = errors(*statuses)
    return {"operation_id": operation_id, "status_code": 204, "responses": responses, "response_class": Response}


@routes.post("", **_reads("createConsumerInstanceV2", V2CreatedInstance, 409, 422, 429))
async def create_instance(
    instances: ConsumerInstances, group: Group, request: Request, body: V2CreateInstance | None = None
) -> Response:
    """Create a consumer instance in a group."""
    name = await instances.create(group, body or V2CreateInstance())
    uri = f"{own_url(request)}/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
    return _json_response(V2CreatedInstance(instance_id=name, base_uri=uri))


@routes.delete("/instances/{name}", **_writes("deleteConsumerInstanceV2", 404, 422))
async def delete_instance(instances: ConsumerInstances, group: Group, name: Name) -> None:
    """Delete a consumer instance: it leaves its group at once; with auto.commit.enable it commits first."""
    await instances.delete(group, name)


@routes.post("/instances/{name}/subscription", **_writes("subscribeV2", 404, 409, 422))
async def subscribe(instances: ConsumerInstances, group: Group, name: Name, body: V2Subscription) -> None:
    """Subscribe to topics, by name or by a pattern; replaces the current subscription."""
    if body.topics is not None and body.topic_pattern is not None:
        raise instance_errors.exclusive()
    if body.topics is not None:
        topics = body.topics
        await instances.use(group, name, lambda instance: instance.subscribe(topics), is_remote=False)
    elif body.topic_pattern is not None:
        pattern = body.topic_pattern
        await instances.use(group, name, lambda instance: instance.subscribe_to_pattern(pattern))
    else:
        raise instance_errors.illegal_state("Neither topic_pattern nor topics are present in request")


@routes.get("/instances/{name}/subscription", **_reads("getSubscriptionV2", V2SubscribedTopics, 404, 422))
async def get_subscription(instances: ConsumerInstances, group: Group, name: Name) -> Response:
    """The subscribed topics of an instance."""
    topics = await instances.use(group, name, lambda instance: instance.topics, is_remote=False)
    return _json_response(V2SubscribedTopics(topics=topics))


@routes.delete("/instances/{name}/subscription", **_writes("unsubscribeV2", 404, 422))
async def unsubscribe(instances: ConsumerInstances, group: Group, name: Name) -> None:
    """End the subscription or the assignment."""
    await instances.use(group, name, Instance.unsubscribe)


@routes.post("/instances/{name}/assignments", **_writes("assignPartitionsV2", 404, 409, 422))
async def assign(instances: ConsumerInstances, group: Group, name: Name, body: V2Partitions) -> None:
    """Read these partitions, independently of the group; replaces the current assignment."""
    await instances.use(group, name, partial(Instance.assign, places=_places(body.partitions)))


@routes.get("/instances/{name}/assignments", **_reads("getAssignmentsV2", V2Partitions, 404, 422))
async def get_assignments(instances: ConsumerInstances, group: Group, name: Name) -> Response:
    """The partitions that an instance reads, assigned by the client or by the group."""
    assigned = await instances.assigned(group, name)
    return _json_response(
        V2Partitions(partitions=[V2Partition(topic=topic, partition=number) for topic, number in assigned])
    )


@routes.post("/instances/{name}/positions", **_writes("seekV2", 404, 409, 422))
async def seek(instances: ConsumerInstances, group: Group, name: Name, body: V2Positions) -> None:
    """Move to offsets, or to the first records at or after a time (to the end, if there are none)."""
    offsets = {(item.topic, item.partition): item.offset for item in body.offsets}
    times = {(item.topic, item.partition): max(0, int(item.timestamp.timestamp() * 1000)) for item in body.timestamps}
    await instances.seek(group, name, offsets=offsets, times=times)


@routes.post("/instances/{name}/positions/beginning", **_writes("seekToBeginningV2", 404, 409, 422))
async def seek_to_beginning(instances: ConsumerInstances, group: Group, name: Name, body: V2Partitions) -> None:
    """Move to the beginning of partitions."""
    await instances.seek(group, name, offsets={}, times=dict.fromkeys(_places(body.partitions), BEGINNING))


@routes.post("/instances/{name}/positions/end", **_writes("seekToEndV2", 404, 409, 422))
async def seek_to_end(instances: ConsumerInstances, group: Group, name: Name, body: V2Partitions) -> None:
    """Move to the end of partitions."""
    await instances.seek(group, name, offsets={}, times=dict.fromkeys(_places(body.partitions), END))


@routes.post("/instances/{name}/offsets", **_reads("commitOffsetsV2", list[V2CommittedOffset], 404, 409, 422))
async def commit(instances: ConsumerInstances, group: Group, name: Name, body: V2Commits | None = None) -> Response:
    """Commit the offsets of the listed records, or of all that were received. The response is an empty list."""
    records = None if body is None else body.offsets
    commits = None
    if records is not None:
        # Clients list the last records they have processed; Kafka's commits name the next one to read.
        commits = {(item.topic, item.partition): Commit(item.offset + 1, item.metadata or "") for item in records}
    await instances.commit(group, name, commits)
    return Response(b"[]", media_type=_JSON)


@routes.get(
    "/instances/{name}/offsets",
    **_reads("getCommittedOffsetsV2", V2CommittedOffsets, 404, 408, 413, 422),
    openapi_extra={
        "requestBody": {
            "description": "The partitions, for clients that can send a body with GET.",
            "content": {_JSON: {"schema": {"$ref": "#/components/schemas/V2Partitions"}}},
        }
    },
)
async def get_committed(
    instances: ConsumerInstances,
    group: Group,
    name: Name,
    request: Request,
    topic: Annotated[str | None, Query(max_length=249, description="A topic, instead of a body.")] = None,
    partition: Annotated[
        list[Annotated[int, Query(ge=0, le=2**31 - 1)]] | None,
        Query(max_length=1000, description="Its partitions, each `partition=`."),
    ] = None,
) -> Response:
    """The group's commits for the partitions in the body or the query, or for all partitions of the instance."""
    if topic is not None:
        places = [(topic, number) for number in partition or []]
    else:
        places = await _partitions_in_body(request) or list(await instances.assigned(group, name))
    found = await instances.use(group, name, lambda instance: instance.committed(places))
    offsets = [
        V2CommittedOffset(topic=place[0], partition=place[1], offset=item.offset, metadata=item.metadata)
        for place, item in found.items()
    ]
    return _json_response(V2CommittedOffsets(offsets=offsets))


@routes.get(
    "/instances/{name}/records",
    operation_id="pollRecordsV2",
    responses={
        **errors(404, 406, 409, 422),
        200: {"model": list[V2ConsumedRecord], "description": "The next records.", "content": _RECORDS_CONTENT},
    },
)
async def poll(
    instances: ConsumerInstances,
    group: Group,
    name: Name,
    request: Request,
    timeout: Timeout = None,  # noqa: ASYNC109 - the API's word
    max_bytes: MaxBytes = None,
) -> Response:
    """The next records, in the format of the instance.

    The response comes as soon as there are fetch.min.bytes of them, or when the time is up, with what there is.
    Records count as received when the client sends its next request; until then they are not committed.
    """
    accept = request.headers.get("accept", "*/*").encode()
    media_type = negotiate(accept, tuple(EMBEDDED)) or negotiate(accept, V2) or V2[0]
    try:
        if IS_HEAD in request.scope:
            raise ProxyError(405, "HEAD would consume records without returning them: use GET")
        media_type = await _records_type(instances, group, name, accept)
        body = await instances.poll(
            group,
            name,
            timeout_ms=None if timeout is None or timeout < 0 else timeout,
            max_bytes=None if max_bytes is None or max_bytes <= 0 else max_bytes,
            client=_Client(request),
        )
    except ProxyError as error:
        response = envelope(error.status, error.code, error.message, retry_after_seconds=error.retry_after_seconds)
        response.headers["content-type"] = media_type.decode()
        return response
    return Response(body, media_type=media_type.decode())


class _Client:
    """The client of a request, by its connection."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._connection = get_connection(request.scope)

    async def is_gone(self) -> bool:
        """Whether it has left."""
        return await self._request.is_disconnected() or (
            self._connection is not None and self._connection.has_hung_up()
        )

    def is_lost(self) -> bool:
        """Whether it left without reading its response."""
        return self._connection is not None and self._connection.is_broken


async def _records_type(instances: CallerInstances, group: str, name: str, accept: bytes) -> bytes:
    """The media type of the records; raises ProxyError unless the client accepts the instance's format."""
    own = await instances.format_of(group, name)
    offered = next(media_type for media_type, format_ in EMBEDDED.items() if format_ is own)
    chosen = negotiate(accept, (offered, *V2))
    if chosen is None and negotiate(accept, tuple(EMBEDDED)) is not None:
        raise instance_errors.format_mismatch(own)
    if chosen is None:
        raise ProxyError(406, "HTTP 406 Not Acceptable")
    return chosen


async def _partitions_in_body(request: Request) -> list[TopicPartition]:
    """The partitions in the body of a GET; raises ProxyError."""
    body = b""
    try:
        async with asyncio.timeout(_GET_BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > _MAX_GET_BODY_BYTES:
                    raise too_large(f"The body of a GET may have at most {_MAX_GET_BODY_BYTES} bytes")
    except TimeoutError:
        raise ProxyError(408, f"The body did not arrive within {_GET_BODY_SECONDS:g} s") from None
    if not body.strip():
        return []
    try:
        return _places(_partitions.validate_json(body).partitions)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise ProxyError(400, f"Body {where}: {first['msg']}") from None


def _places(partitions: list[V2Partition]) -> list[TopicPartition]:
    return [(item.topic, item.partition) for item in partitions]


def _json_response(model: BaseModel) -> Response:
    return Response(model.model_dump_json(), media_type=_JSON)
