"""The brokers of the cluster, and what they hold."""

from core_broker.client.models import Broker, Partition
from rest_proxy.admin.cluster import KafkaCluster, not_found


def listed(cluster: KafkaCluster) -> list[Broker]:
    """Every broker, by id."""
    return sorted(cluster.described().brokers, key=lambda broker: broker.id)


def found(cluster: KafkaCluster, broker_id: int) -> Broker:
    """A broker, or 404."""
    for broker in listed(cluster):
        if broker.id == broker_id:
            return broker
    raise not_found()


def replicas_on(cluster: KafkaCluster, broker_id: int) -> list[tuple[str, Partition]]:
    """The partitions that a broker holds, with their topics, by topic and number; 404 for no broker of the cluster."""
    found(cluster, broker_id)
    with cluster.asked() as admin:
        topics = admin.all_topics()
    return [(topic.name, item) for topic in topics for item in topic.partitions if broker_id in item.replicas]
