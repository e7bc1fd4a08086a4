"""Partitions of topics: their replicas, offsets and reassignments."""

from core_broker.client.models import Partition, Reassignment
from rest_proxy.admin import topics
from rest_proxy.admin.cluster import KafkaCluster, not_found
from rest_proxy.errors import ProxyError


def list_all(cluster: KafkaCluster, topic: str) -> list[Partition]:
    """The partitions of a topic, by number."""
    return sorted(topics.get(cluster, topic).partitions, key=lambda partition: partition.index)


def get(cluster: KafkaCluster, topic: str, index: int, *, missing: ProxyError | None = None) -> Partition:
    """A partition, or 404."""
    for partition in list_all(cluster, topic):
        if partition.index == index:
            return partition
    raise missing or not_found()


def on_broker(cluster: KafkaCluster, broker_id: int) -> list[tuple[str, Partition]]:
    """The partitions with a replica on a broker, with their topics, by topic and number; 404 for an unknown broker."""
    cluster.broker(broker_id)
    with cluster.admin() as admin:
        found = admin.all_topics()
    return [(topic.name, item) for topic in found for item in topic.partitions if broker_id in item.replicas]


def offsets(cluster: KafkaCluster, topic: str, index: int) -> tuple[int, int]:
    """The first offset of a partition, and the one that its next record gets; 40402 when it does not exist."""
    get(cluster, topic, index, missing=ProxyError(40402, "Partition not found."))
    key = (topic, index)
    with cluster.admin() as admin:
        return admin.offsets([key], "earliest")[key], admin.offsets([key], "latest")[key]


def reassignments(cluster: KafkaCluster, *, topic: str | None = None) -> list[Reassignment]:
    """The partitions that are being reassigned: of one topic, or of all."""
    with cluster.admin() as admin:
        moving = admin.reassignments()
    return [item for item in moving if topic in (None, item.topic)]


def reassignment(cluster: KafkaCluster, topic: str, index: int) -> Reassignment:
    """The reassignment of a partition, or 404 if there is none."""
    for item in reassignments(cluster, topic=topic):
        if item.partition == index:
            return item
    raise not_found()
