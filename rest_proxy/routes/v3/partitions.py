"""`/v3/clusters/{cluster_id}/topics/{topic_name}/partitions`: partitions, replicas, offsets, reassignments."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query, Response

from core_broker.client.models import Reassignment
from core_broker.service.web.limits import BoundedRoute
from rest_proxy.admin import partitions, topics
from rest_proxy.admin.cluster import not_found
from rest_proxy.errors import ProxyError
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
from rest_proxy.routes.services import Cluster, ClusterLinks
from rest_proxy.routes.v3.responses import json_response, reads

_OFFSET_TYPE = "earliest_and_latest"
_PARTITION = "/{topic_name}/partitions/{partition_id}"

routes = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["v3 partitions"], route_class=BoundedRoute)

# `-` in place of a name or number means all of them, so these routes come before those with a name.


@routes.get("/-/partitions/-/reassignment", **reads(ReassignmentDataList, "listKafkaReassignments"))
def list_reassignments(cluster: Cluster, links: ClusterLinks) -> Response:
    """Every partition of the cluster that is being reassigned."""
    return _reassignments_response(partitions.reassignments(cluster), links, "-")


@routes.get("/{topic_name}/partitions/-/reassignment", **reads(ReassignmentDataList, "listKafkaReassignmentsOfTopic"))
def list_reassignments_of_topic(topic_name: TopicName, cluster: Cluster, links: ClusterLinks) -> Response:
    """The partitions of a topic that are being reassigned."""
    topics.get(cluster, topic_name)
    return _reassignments_response(partitions.reassignments(cluster, topic=topic_name), links, topic_name)


@routes.get(f"{_PARTITION}/reassignment", **reads(ReassignmentData, "getKafkaReassignment"))
def get_reassignment(
    topic_name: TopicName, partition_id: PartitionId, cluster: Cluster, links: ClusterLinks
) -> Response:
    """The reassignment of a partition; 404 if there is none."""
    return json_response(ReassignmentData.of(partitions.reassignment(cluster, topic_name, partition_id), links))


@routes.get("/{topic_name}/partitions", **reads(PartitionDataList, "listKafkaPartitions"))
def list_partitions(topic_name: TopicName, cluster: Cluster, links: ClusterLinks) -> Response:
    """The partitions of a topic."""
    data = [PartitionData.of(topic_name, item, links) for item in partitions.list_all(cluster, topic_name)]
    return json_response(PartitionDataList(metadata=links.collection("topics", topic_name, "partitions"), data=data))


@routes.get(_PARTITION, **reads(PartitionData, "getKafkaPartition"))
def get_partition(topic_name: TopicName, partition_id: PartitionId, cluster: Cluster, links: ClusterLinks) -> Response:
    """A partition."""
    return json_response(PartitionData.of(topic_name, partitions.get(cluster, topic_name, partition_id), links))


@routes.get(f"{_PARTITION}/offset", **reads(PartitionOffsetsData, "getKafkaPartitionOffsets"))
def get_partition_offsets(
    topic_name: TopicName,
    partition_id: PartitionId,
    *,
    offset_type: Annotated[
        str, Query(description="Which offsets; `earliest_and_latest` is the only choice.")
    ] = _OFFSET_TYPE,
    cluster: Cluster,
    links: ClusterLinks,
) -> Response:
    """The first offset of a partition, and the next one to be written."""
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
    return json_response(data)


@routes.get(f"{_PARTITION}/replicas", **reads(ReplicaDataList, "listKafkaReplicas"))
def list_replicas(topic_name: TopicName, partition_id: PartitionId, cluster: Cluster, links: ClusterLinks) -> Response:
    """The replicas of a partition, the preferred leader first."""
    found = partitions.get(cluster, topic_name, partition_id)
    data = [ReplicaData.of(topic_name, found, broker_id, links) for broker_id in found.replicas]
    metadata = links.collection("topics", topic_name, "partitions", partition_id, "replicas")
    return json_response(ReplicaDataList(metadata=metadata, data=data))


@routes.get(f"{_PARTITION}/replicas/{{broker_id}}", **reads(ReplicaData, "getKafkaReplica"))
def get_replica(
    topic_name: TopicName, partition_id: PartitionId, broker_id: BrokerId, cluster: Cluster, links: ClusterLinks
) -> Response:
    """The replica of a partition on one broker."""
    found = partitions.get(cluster, topic_name, partition_id)
    if broker_id not in found.replicas:
        raise not_found()
    return json_response(ReplicaData.of(topic_name, found, broker_id, links))


def _reassignments_response(found: Iterable[Reassignment], links: Links, topic: str) -> Response:
    data = [ReassignmentData.of(item, links) for item in found]
    metadata = links.collection("topics", topic, "partitions", "-", "reassignment")
    return json_response(ReassignmentDataList(metadata=metadata, data=data))
