"""`/brokers` and `/topics` of API v2."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Body, Response
from fastapi.openapi.models import Example

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import configs, partitions, topics
from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
from rest_proxy.models.v2.topics import (
    BrokerList,
    PartitionDetails,
    PartitionOffsets,
    TopicDetails,
    partition_details,
    topic_details,
)
from rest_proxy.routes.media_types import V2Response
from rest_proxy.routes.parameters import PartitionId, TopicName
from rest_proxy.routes.services import Cluster
from rest_proxy.routes.v3.responses import json_response

_UNKNOWN_TOPIC_IN_V3 = 40403
_INVALID_REQUEST = 40002
_ANYTHING: dict[str, Example] = {"anything": {"summary": "Any strings by name.", "value": {"hello": "proxy"}}}


routes = APIRouter(tags=["v2 topics"], route_class=BoundedRoute, default_response_class=V2Response)


def _reads(model: Any, operation_id: str, *statuses: int) -> dict[str, Any]:
    return {"response_model": model, "responses": errors(*statuses), "operation_id": operation_id}


@routes.get("/", response_model=dict[str, str], operation_id="getRootV2")
def get_root() -> Response:
    """Check that the proxy is up."""
    return Response(b"{}", media_type="application/json")


@routes.post("/", response_model=dict[str, str], operation_id="postRootV2")
def post_root(
    body: Annotated[dict[str, str] | None, Body(openapi_examples=_ANYTHING)] = None,  # noqa: ARG001 - it is checked
) -> Response:
    """Check that the proxy is up and accepts bodies."""
    return Response(b"{}", media_type="application/json")


@routes.get("/brokers", **_reads(BrokerList, "listBrokersV2", 406))
def list_brokers(cluster: Cluster) -> Response:
    """The ids of the brokers."""
    return json_response(BrokerList(brokers=[broker.id for broker in cluster.brokers()]))


@routes.get("/topics", **_reads(list[str], "listTopicsV2", 406))
def list_topics(cluster: Cluster) -> Response:
    """The names of the topics, except internal ones."""
    names = [topic.name for topic in topics.list_all(cluster)]
    return Response(msgspec.json.encode(names), media_type="application/json")


@routes.get("/topics/{topic}", **_reads(TopicDetails, "getTopicV2", 404, 406))
def get_topic(topic: TopicName, cluster: Cluster) -> Response:
    """A topic with its configs and partitions."""
    with _v2_error_codes():
        return json_response(topic_details(topics.get(cluster, topic), configs.of_topic(cluster, topic)))


@routes.get("/topics/{topic}/partitions", **_reads(list[PartitionDetails], "listPartitionsV2", 404, 406))
def list_partitions(topic: TopicName, cluster: Cluster) -> Response:
    """The partitions of a topic."""
    with _v2_error_codes():
        found = [partition_details(partition).model_dump() for partition in partitions.list_all(cluster, topic)]
    return Response(msgspec.json.encode(found), media_type="application/json")


@routes.get("/topics/{topic}/partitions/{partition}", **_reads(PartitionDetails, "getPartitionV2", 404, 406))
def get_partition(topic: TopicName, partition: PartitionId, cluster: Cluster) -> Response:
    """A partition of a topic."""
    with _v2_error_codes():
        found = partitions.get(cluster, topic, partition, missing=ProxyError(40402, "Partition not found."))
    return json_response(partition_details(found))


@routes.get(
    "/topics/{topic}/partitions/{partition}/offsets", **_reads(PartitionOffsets, "getPartitionOffsetsV2", 404, 406)
)
def get_partition_offsets(topic: TopicName, partition: PartitionId, cluster: Cluster) -> Response:
    """The first offset of a partition, and the next one to be written."""
    with _v2_error_codes():
        beginning, end = partitions.offsets(cluster, topic, partition)
    return json_response(PartitionOffsets(beginning_offset=beginning, end_offset=end))


@contextmanager
def _v2_error_codes() -> Iterator[None]:
    """Map the errors for missing and invalid topics: API v2 has one code for both."""
    try:
        yield
    except ProxyError as error:
        if error.code in (_UNKNOWN_TOPIC_IN_V3, _INVALID_REQUEST):
            raise ProxyError(40401, "Topic not found.") from error
        raise
