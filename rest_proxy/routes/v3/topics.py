"""`/v3/clusters/{cluster_id}/topics`: topics, created, grown and deleted."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import topics
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.admin.topics import NewTopic
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.resources import Links
from rest_proxy.models.v3.topics import CreateTopicBody, TopicData, TopicDataList, UpdatePartitionsBody
from rest_proxy.routes.parameters import TopicName
from rest_proxy.routes.v3.answers import InCluster, body_missing, changing, in_cluster, nothing, told, told_in_parts

_ASK_OPERATIONS = "Whether to tell what the proxy's user may do with the topic."


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """The routes, answering for one cluster."""
    routes = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["v3 topics"], route_class=BoundedRoute)
    here = in_cluster(cluster, advertised)
    _add_reading(routes, cluster, here)
    _add_writing(routes, cluster, here)
    return routes


def _add_reading(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get("", response_model=TopicDataList, responses=errors(404), operation_id="listKafkaTopics")
    def list_topics(links: Annotated[Links, Depends(here)]) -> Response:
        """The topics of the cluster, without those that Kafka keeps for itself."""
        data = (TopicData.of(topic, links) for topic in topics.listed(cluster))
        return told_in_parts(TopicDataList(metadata=links.collection("topics"), data=[]), data)

    @routes.get("/{topic_name}", response_model=TopicData, responses=errors(404), operation_id="getKafkaTopic")
    def get_topic(
        topic_name: TopicName,
        *,
        include_authorized_operations: Annotated[bool, Query(description=_ASK_OPERATIONS)] = False,
        links: Annotated[Links, Depends(here)],
    ) -> Response:
        """A topic."""
        found = topics.found(cluster, topic_name, authorized_operations=include_authorized_operations)
        return told(TopicData.of(found, links))


def _add_writing(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.post(
        "",
        status_code=201,
        response_model=TopicData,
        responses={200: {"model": TopicData, "description": "It could be created."}, **errors(404, 413, 415, 422)},
        operation_id="createKafkaTopic",
    )
    def create_topic(links: Annotated[Links, Depends(here)], body: CreateTopicBody | None = None) -> Response:
        """Create a topic, or with `validate_only` see whether it could be."""
        if body is None:
            raise body_missing()
        only = bool(body.validate_only)
        partitions, replicas = topics.created(cluster, _new_topic(body), validate_only=only)
        data = TopicData.named(body.topic_name, links, partitions_count=partitions, replication_factor=replicas)
        answer = told(data, status=200 if only else 201)
        answer.headers["location"] = data.metadata.self
        return answer

    @routes.patch(
        "/{topic_name}",
        response_model=TopicData,
        responses=errors(404, 413, 415, 422),
        operation_id="updateKafkaPartitions",
    )
    def update_partitions(
        topic_name: TopicName, links: Annotated[Links, Depends(here)], body: UpdatePartitionsBody | None = None
    ) -> Response:
        """Give a topic more partitions."""
        if body is None:
            raise body_missing()
        return told(TopicData.of(topics.grown(cluster, topic_name, body.partitions_count), links))

    @routes.delete(
        "/{topic_name}",
        operation_id="deleteKafkaTopic",
        **changing(here, 404),
    )
    def delete_topic(topic_name: TopicName) -> Response:
        """Delete a topic with all of its records."""
        topics.delete(cluster, topic_name)
        return nothing()


def _new_topic(body: CreateTopicBody) -> NewTopic:
    return NewTopic(
        name=body.topic_name,
        partitions=-1 if body.partitions_count is None else body.partitions_count,
        replication_factor=-1 if body.replication_factor is None else body.replication_factor,
        assignment=body.replicas_assignments or {},
        configs={config.name: config.value for config in body.configs or ()},
    )
