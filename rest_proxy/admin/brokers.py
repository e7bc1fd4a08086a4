"""The brokers of the cluster, and their replicas."""

from core_broker.client.models import Broker, Partition
from rest_proxy.admin.cluster import KafkaCluster, not_found


def list_all(cluster: KafkaCluster) -> list[Broker]:
    """Every broker, by id."""
    return sorted(cluster.describe().brokers, key=lambda broker: broker.id)


def get(cluster: KafkaCluster, broker_id: int) -> Broker:
    """A broker, or 404."""
    for broker in list_all(cluster):
        if broker.id == broker_id:
            return broker
    raise not_found()


def replicas_on(cluster: KafkaCluster, broker_id: int) -> list[tuple[str, Partition]]:
    """The partitions with a replica on a broker, with their topics, by topic and number; 404 for an unknown broker."""
    get(cluster, broker_id)
    with cluster.admin() as admin:
        topics = admin.all_topics()
    return [(topic.name, item) for topic in topics for item in topic.partitions if broker_id in item.replicas]
