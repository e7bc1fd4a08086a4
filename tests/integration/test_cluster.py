"""Three brokers as processes: what clients of others see when brokers die, stop and return."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster
from tests.support.cluster_load import ClusterLoad, read_all


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path) as cluster:
        yield cluster


def create(cluster: BrokerCluster, topic: str, partitions: int = 3) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(60)
    return admin


def in_sync(admin: AdminClient, topic: str) -> bool:
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return all(len(partition.isrs) == 3 for partition in found.values())


def test_no_acknowledged_record_is_lost_or_doubled_when_brokers_are_killed(cluster: BrokerCluster) -> None:
    admin = create(cluster, "orders")
    with ClusterLoad(cluster.bootstrap, "orders") as load:
        for number in (1, 2, 3):
            load.wait_for_more()
            cluster[number].kill()
            load.wait_for_more()
            cluster[number].start()
            eventually(lambda: in_sync(admin, "orders"))
    assert load.failed == []
    found = read_all(cluster.bootstrap, "orders", 3)
    assert dict(found) == load.acknowledged
    assert len(found) == len(load.acknowledged)


def test_a_rolling_restart_costs_no_client_an_error(cluster: BrokerCluster) -> None:
    admin = create(cluster, "orders")
    with ClusterLoad(cluster.bootstrap, "orders") as load:
        for number in (1, 2, 3):
            load.wait_for_more()
            cluster[number].stop()
            cluster[number].start()
            eventually(lambda: in_sync(admin, "orders"))
    assert load.failed == []
    assert dict(read_all(cluster.bootstrap, "orders", 3)) == load.acknowledged


def test_with_two_of_three_brokers_down_reads_go_on_and_writes_wait(cluster: BrokerCluster) -> None:
    admin = create(cluster, "orders", 1)
    with ClusterLoad(cluster.bootstrap, "orders") as load:
        load.wait_for_more()
    leader = admin.list_topics("orders", timeout=60).topics["orders"].partitions[0].leader
    others = [node for node in cluster if node.node_id != leader]
    others[0].kill()
    others[1].kill()
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 8000})
    producer.produce("orders", b"late", on_delivery=lambda error, _: refused.append(error))
    producer.flush(60)
    assert refused[0] is not None
    for node in others:
        node.start()
    eventually(lambda: in_sync(admin, "orders"))
    assert set(load.acknowledged) <= {value for value, _ in read_all(cluster.bootstrap, "orders", 1)}


def test_a_broker_that_cannot_write_its_disk_stops_and_others_lead(cluster: BrokerCluster) -> None:
    admin = create(cluster, "orders", 1)
    with ClusterLoad(cluster.bootstrap, "orders") as load:
        load.wait_for_more()
        node = cluster[admin.list_topics("orders", timeout=60).topics["orders"].partitions[0].leader]
        log = next((node.data / "orders-0").glob("*.log"))
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 65536, resource.RLIM_INFINITY))
        eventually(lambda: not node.is_running)
        load.wait_for_more()
        node.start()
        eventually(lambda: in_sync(admin, "orders"))
    assert load.failed == []
    assert dict(read_all(cluster.bootstrap, "orders", 1)) == load.acknowledged
