"""`/v3/clusters/{cluster_id}/topics`: topics, listed, created, extended and deleted."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import topics
from rest_proxy.admin.topics import NewTopic
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.topics import CreateTopicBody, TopicData, TopicDataList, UpdatePartitionsBody
from rest_proxy.routes.parameters import TopicName
from rest_proxy.routes.services import Cluster, ClusterLinks
from rest_proxy.routes.v3.responses import BODY_ERRORS, collection_response, json_response, missing_body, reads, writes

_ASK_OPERATIONS = "Whether to include the operations that the proxy's user is authorized for."

routes = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["v3 topics"], route_class=BoundedRoute)


@routes.get("", **reads(TopicDataList, "listKafkaTopics"))
def list_topics(cluster: Cluster, links: ClusterLinks) -> Response:
    """The topics of the cluster, except internal ones."""
    data = (TopicData.of(topic, links) for topic in topics.list_all(cluster))
    return collection_response(TopicDataList(metadata=links.collection("topics"), data=[]), data)


@routes.get("/{topic_name}", **reads(TopicData, "getKafkaTopic"))
def get_topic(
    topic_name: TopicName,
    *,
    include_authorized_operations: Annotated[bool, Query(description=_ASK_OPERATIONS)] = False,
    cluster: Cluster,
    links: ClusterLinks,
) -> Response:
    """A topic."""
    found = topics.get(cluster, topic_name, authorized_operations=include_authorized_operations)
    return json_response(TopicData.of(found, links))


@routes.post(
    "",
    status_code=201,
    response_model=TopicData,
    responses={
        200: {"model": TopicData, "description": "It could be created (`validate_only`)."},
        **errors(*BODY_ERRORS),
    },
    operation_id="createKafkaTopic",
)
def create_topic(cluster: Cluster, links: ClusterLinks, body: CreateTopicBody | None = None) -> Response:
    """Create a topic, or with `validate_only` check whether it could be created."""
    if body is None:
        raise missing_body()
    validate_only = bool(body.validate_only)
    new = NewTopic(
        name=body.topic_name,
        partitions=-1 if body.partitions_count is None else body.partitions_count,
        replication_factor=-1 if body.replication_factor is None else body.replication_factor,
        assignment=body.replicas_assignments or {},
        configs={config.name: config.value for config in body.configs or ()},
    )
    partitions, replicas = topics.create(cluster, new, validate_only=validate_only)
    data = TopicData.create(body.topic_name, links, partitions_count=partitions, replication_factor=replicas)
    answer = json_response(data, status=200 if validate_only else 201)
    answer.headers["location"] = data.metadata.self
    return answer


@routes.patch(
    "/{topic_name}", response_model=TopicData, responses=errors(*BODY_ERRORS), operation_id="updateKafkaPartitions"
)
def update_partitions(
    topic_name: TopicName, cluster: Cluster, links: ClusterLinks, body: UpdatePartitionsBody | None = None
) -> Response:
    """Give a topic more partitions."""
    if body is None:
        raise missing_body()
    return json_response(TopicData.of(topics.grow(cluster, topic_name, body.partitions_count), links))


@routes.delete("/{topic_name}", **writes("deleteKafkaTopic", 404))
def delete_topic(topic_name: TopicName, cluster: Cluster) -> None:
    """Delete a topic with all of its records."""
    topics.delete(cluster, topic_name)
