"""Three brokers as processes: what clients of others see when brokers die, stop and return."""

import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster

RECORDS_PER_ROUND = 20


class Load:
    """An idempotent producer that writes numbers until it is stopped, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.failed: list[str] = []
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5}
        )
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(0.01):
            for _ in range(RECORDS_PER_ROUND):
                self._producer.produce(self._topic, str(number).encode(), on_delivery=self._on_delivery)
                number += 1
            self._producer.poll(0)
        self._producer.flush(120)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if error is not None or value is None or partition is None or offset is None:
            self.failed.append(str(error))
        else:
            self.acknowledged[value] = (partition, offset)

    def wait_for_more(self) -> None:
        """Return once further records were acknowledged in every partition."""
        before = len(self.acknowledged)
        eventually(lambda: len(self.acknowledged) > before + 3 * RECORDS_PER_ROUND)


def read_all(bootstrap: str, topic: str, partitions: int) -> list[tuple[bytes, tuple[int, int]]]:
    """Every record of a topic, with its place."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[bytes, tuple[int, int]]] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(60)
        assert message is not None, "the topic cannot be read to its end"
        error, partition = message.error(), message.partition()
        assert partition is not None
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(partition)
        else:
            value, offset = message.value(), message.offset()
            assert value is not None
            assert offset is not None
            found.append((value, (partition, offset)))
    consumer.close()
    return found


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
    with Load(cluster.bootstrap, "orders") as load:
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
    with Load(cluster.bootstrap, "orders") as load:
        for number in (1, 2, 3):
            load.wait_for_more()
            cluster[number].stop()
            cluster[number].start()
            eventually(lambda: in_sync(admin, "orders"))
    assert load.failed == []
    assert dict(read_all(cluster.bootstrap, "orders", 3)) == load.acknowledged


def test_with_two_of_three_brokers_down_reads_go_on_and_writes_wait(cluster: BrokerCluster) -> None:
    admin = create(cluster, "orders", 1)
    with Load(cluster.bootstrap, "orders") as load:
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
    with Load(cluster.bootstrap, "orders") as load:
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
