"""Partitions of topics: where they are, where they begin and end, and which are on the move."""

from core_broker.client.models import Partition, Reassignment
from rest_proxy.admin import topics
from rest_proxy.admin.cluster import KafkaCluster, not_found
from rest_proxy.errors import ProxyError


def listed(cluster: KafkaCluster, topic: str) -> list[Partition]:
    """The partitions of a topic, by number."""
    return sorted(topics.found(cluster, topic).partitions, key=lambda partition: partition.index)


def found(cluster: KafkaCluster, topic: str, index: int, *, missing: ProxyError | None = None) -> Partition:
    """A partition, or 404."""
    for partition in listed(cluster, topic):
        if partition.index == index:
            return partition
    raise missing or not_found()


def offsets(cluster: KafkaCluster, topic: str, index: int) -> tuple[int, int]:
    """The first offset of a partition, and the one that its next record gets; 40402 when it does not exist."""
    found(cluster, topic, index, missing=ProxyError(40402, "Partition not found."))
    place = (topic, index)
    with cluster.asked() as admin:
        return admin.offsets([place], "earliest")[place], admin.offsets([place], "latest")[place]


def reassignments(cluster: KafkaCluster, *, topic: str | None = None) -> list[Reassignment]:
    """The partitions whose replicas are on the move: of one topic, or of all."""
    with cluster.asked() as admin:
        moving = admin.reassignments()
    return [item for item in moving if topic in (None, item.topic)]


def reassignment(cluster: KafkaCluster, topic: str, index: int) -> Reassignment:
    """How a partition moves, or 404 when it does not."""
    for item in reassignments(cluster, topic=topic):
        if item.partition == index:
            return item
    raise not_found()
