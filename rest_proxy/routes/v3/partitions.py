"""`/v3/clusters/{cluster_id}/topics/{topic_name}/partitions`: partitions, replicas, offsets, replicas on the move."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from core_broker.client.models import Reassignment
from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import partitions, topics
from rest_proxy.admin.cluster import KafkaCluster, not_found
from rest_proxy.errors import ProxyError
from rest_proxy.models.errors import errors
from rest_proxy.models.v3.partitions import (
    PartitionData,
    PartitionDataList,
    PartitionOffsetsData,
    ReassignmentData,
    ReassignmentDataList,
    ReplicaData,
    ReplicaDataList,
)
from rest_proxy.models.v3.resources import Links
from rest_proxy.routes.parameters import BrokerId, PartitionId, TopicName
from rest_proxy.routes.v3.answers import InCluster, in_cluster, told

_OFFSET_TYPE = "earliest_and_latest"


def router(cluster: KafkaCluster, advertised: Sequence[str] = ()) -> APIRouter:
    """The routes, answering for one cluster."""
    routes = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["v3 partitions"], route_class=BoundedRoute)
    here = in_cluster(cluster, advertised)
    # A `-` in the place of a name or number means all of them, and so comes before any.
    _add_reassignments(routes, cluster, here)
    _add_partitions(routes, cluster, here)
    _add_replicas(routes, cluster, here)
    return routes


def _add_reassignments(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/-/partitions/-/reassignment",
        response_model=ReassignmentDataList,
        responses=errors(404),
        operation_id="listKafkaReassignments",
    )
    def list_reassignments(links: Annotated[Links, Depends(here)]) -> Response:
        """Every partition of the cluster whose replicas are on the move."""
        return _moving(partitions.reassignments(cluster), links, "-")

    @routes.get(
        "/{topic_name}/partitions/-/reassignment",
        response_model=ReassignmentDataList,
        responses=errors(404),
        operation_id="listKafkaReassignmentsOfTopic",
    )
    def list_reassignments_of_topic(topic_name: TopicName, links: Annotated[Links, Depends(here)]) -> Response:
        """The partitions of a topic whose replicas are on the move."""
        topics.found(cluster, topic_name)
        return _moving(partitions.reassignments(cluster, topic=topic_name), links, topic_name)

    @routes.get(
        "/{topic_name}/partitions/{partition_id}/reassignment",
        response_model=ReassignmentData,
        responses=errors(404),
        operation_id="getKafkaReassignment",
    )
    def get_reassignment(
        topic_name: TopicName, partition_id: PartitionId, links: Annotated[Links, Depends(here)]
    ) -> Response:
        """Where a partition moves; 404 when it does not."""
        return told(ReassignmentData.of(partitions.reassignment(cluster, topic_name, partition_id), links))


def _add_partitions(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/{topic_name}/partitions",
        response_model=PartitionDataList,
        responses=errors(404),
        operation_id="listKafkaPartitions",
    )
    def list_partitions(topic_name: TopicName, links: Annotated[Links, Depends(here)]) -> Response:
        """The partitions of a topic."""
        data = [PartitionData.of(topic_name, item, links) for item in partitions.listed(cluster, topic_name)]
        return told(PartitionDataList(metadata=links.collection("topics", topic_name, "partitions"), data=data))

    @routes.get(
        "/{topic_name}/partitions/{partition_id}",
        response_model=PartitionData,
        responses=errors(404),
        operation_id="getKafkaPartition",
    )
    def get_partition(
        topic_name: TopicName, partition_id: PartitionId, links: Annotated[Links, Depends(here)]
    ) -> Response:
        """A partition."""
        return told(PartitionData.of(topic_name, partitions.found(cluster, topic_name, partition_id), links))

    @routes.get(
        "/{topic_name}/partitions/{partition_id}/offset",
        response_model=PartitionOffsetsData,
        responses=errors(404),
        operation_id="getKafkaPartitionOffsets",
    )
    def get_partition_offsets(
        topic_name: TopicName,
        partition_id: PartitionId,
        *,
        offset_type: Annotated[str, Query(description="Which offsets; there is one choice.")] = _OFFSET_TYPE,
        links: Annotated[Links, Depends(here)],
    ) -> Response:
        """Where a partition begins and ends."""
        if offset_type != _OFFSET_TYPE:
            raise ProxyError(400, f"offset_type:{offset_type[:80]} is invalid")
        earliest, latest = partitions.offsets(cluster, topic_name, partition_id)
        name = ("topic", topic_name, "partition", partition_id, "offset_type", offset_type)
        data = PartitionOffsetsData(
            metadata=links.resource(("topics", topic_name, "partitions", partition_id, "offset"), name),
            cluster_id=links.cluster_id,
            topic_name=topic_name,
            partition_id=partition_id,
            earliest_offset=earliest,
            latest_offset=latest,
        )
        return told(data)


def _add_replicas(routes: APIRouter, cluster: KafkaCluster, here: InCluster) -> None:
    @routes.get(
        "/{topic_name}/partitions/{partition_id}/replicas",
        response_model=ReplicaDataList,
        responses=errors(404),
        operation_id="listKafkaReplicas",
    )
    def list_replicas(
        topic_name: TopicName, partition_id: PartitionId, links: Annotated[Links, Depends(here)]
    ) -> Response:
        """The replicas of a partition, the preferred leader first."""
        found = partitions.found(cluster, topic_name, partition_id)
        data = [ReplicaData.of(topic_name, found, broker_id, links) for broker_id in found.replicas]
        metadata = links.collection("topics", topic_name, "partitions", partition_id, "replicas")
        return told(ReplicaDataList(metadata=metadata, data=data))

    @routes.get(
        "/{topic_name}/partitions/{partition_id}/replicas/{broker_id}",
        response_model=ReplicaData,
        responses=errors(404),
        operation_id="getKafkaReplica",
    )
    def get_replica(
        topic_name: TopicName, partition_id: PartitionId, broker_id: BrokerId, links: Annotated[Links, Depends(here)]
    ) -> Response:
        """What one broker holds of a partition."""
        found = partitions.found(cluster, topic_name, partition_id)
        if broker_id not in found.replicas:
            raise not_found()
        return told(ReplicaData.of(topic_name, found, broker_id, links))


def _moving(found: Iterable[Reassignment], links: Links, topic: str) -> Response:
    data = [ReassignmentData.of(item, links) for item in found]
    metadata = links.collection("topics", topic, "partitions", "-", "reassignment")
    return told(ReassignmentDataList(metadata=metadata, data=data))
