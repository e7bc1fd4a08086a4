import pytest

from rest_proxy.admin import partitions
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.errors import ProxyError

pytestmark = pytest.mark.processes


def test_partitions_are_listed_by_number(cluster: KafkaCluster, topic: str) -> None:
    assert [partition.index for partition in partitions.list_all(cluster, topic)] == [0, 1]


def test_broker_holds_the_partitions_that_it_is_a_replica_of(cluster: KafkaCluster, topic: str) -> None:
    (broker,) = cluster.brokers()
    held = [partition.index for name, partition in partitions.on_broker(cluster, broker.id) if name == topic]
    assert held == [0, 1]


def test_empty_partition_begins_where_it_ends(cluster: KafkaCluster, topic: str) -> None:
    assert partitions.offsets(cluster, topic, 1) == (0, 0)


def test_unknown_partition_has_a_code_of_its_own_where_offsets_are_asked_for(cluster: KafkaCluster, topic: str) -> None:
    with pytest.raises(ProxyError) as raised:
        partitions.offsets(cluster, topic, 2)
    assert raised.value.code == 40402
    with pytest.raises(ProxyError) as raised:
        partitions.get(cluster, topic, 2)
    assert raised.value.code == 404


def test_partition_at_rest_is_not_on_the_move(cluster: KafkaCluster, topic: str) -> None:
    assert partitions.reassignments(cluster, topic=topic) == []
    with pytest.raises(ProxyError) as raised:
        partitions.reassignment(cluster, topic, 0)
    assert raised.value.code == 404
