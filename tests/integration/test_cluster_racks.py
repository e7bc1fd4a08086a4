"""Racks: consumers read from the replica in their own (KIP-392), shown by what each broker has sent."""

import asyncio
import re
import urllib.request
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster, ClusterNode

pytestmark = pytest.mark.timeout(300)

RECORDS: Final = 50
RACK: Final = "rack-3"

Read = Callable[[str, str, str], list[bytes]]
"""Reads every record of a topic, from a client in a rack."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    settings = {"metrics.listener": "http://127.0.0.1:0", "replica.selector.class": selector}
    brokers = BrokerCluster(tmp_path_factory.mktemp("racks"), settings=settings)
    for node in brokers:
        node.settings["broker.rack"] = f"rack-{node.node_id}"
    with brokers:
        yield brokers


def create(cluster: BrokerCluster, topic: str) -> None:
    """A topic whose leader is in the first rack, filled."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 2, 3]])])[topic].result(60)
    produce(cluster, topic, "first")
    eventually(lambda: len(admin.list_topics(topic, timeout=60).topics[topic].partitions[0].isrs) == 3)


def produce(cluster: BrokerCluster, topic: str, label: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, f"{label}-{number}".encode())
    assert producer.flush(60) == 0


def sent_bytes(node: ClusterNode, topic: str) -> int:
    """What a broker has sent to consumers of a topic; replicas do not count."""
    address = re.findall(r"metrics=(http://\S+)", node.log_text())[-1]
    with urllib.request.urlopen(address, timeout=60) as response:
        text = response.read().decode()
    found = re.search(rf'kafka_server_brokertopicmetrics_bytesout_total{{topic="{topic}"}} (\S+)', text)
    return 0 if found is None else int(float(found[1]))


def read_with_librdkafka(bootstrap: str, topic: str, rack: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "client.rack": rack}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < RECORDS:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None, message.error()
        found.append(message.value() or b"")
    consumer.close()
    return found


def read_with_aiokafka(bootstrap: str, topic: str, rack: str) -> list[bytes]:
    async def read() -> list[bytes]:
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", client_rack=rack
        ) as consumer:
            return [(await asyncio.wait_for(anext(consumer), 60)).value or b"" for _ in range(RECORDS)]

    return asyncio.run(read())


@pytest.mark.parametrize("read", [read_with_librdkafka, read_with_aiokafka])
def test_a_consumer_reads_from_the_follower_in_its_rack(cluster: BrokerCluster, read: Read, name: str) -> None:
    create(cluster, name)
    assert read(cluster.bootstrap, name, RACK) == [f"first-{number}".encode() for number in range(RECORDS)]
    assert sent_bytes(cluster[3], name) > 0
    assert sent_bytes(cluster[1], name) == sent_bytes(cluster[2], name) == 0


def test_a_consumer_in_a_rack_without_a_replica_reads_from_the_leader(cluster: BrokerCluster, name: str) -> None:
    create(cluster, name)
    assert len(read_with_librdkafka(cluster.bootstrap, name, "rack-9")) == RECORDS
    assert sent_bytes(cluster[1], name) > 0
    assert sent_bytes(cluster[2], name) == sent_bytes(cluster[3], name) == 0


def test_a_consumer_goes_on_with_the_leader_when_its_follower_dies(cluster: BrokerCluster, name: str) -> None:
    create(cluster, name)
    bootstrap = cluster.bootstrap
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest", "client.rack": RACK}
    )
    consumer.subscribe([name])
    found: list[bytes] = []

    def has_read(count: int) -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
        return len(found) >= count

    eventually(lambda: has_read(RECORDS), pause_s=0)
    assert sent_bytes(cluster[1], name) == 0
    cluster[3].kill()
    produce(cluster, name, "second")
    eventually(lambda: has_read(2 * RECORDS), pause_s=0)
    assert found[RECORDS:] == [f"second-{number}".encode() for number in range(RECORDS)]
    assert sent_bytes(cluster[1], name) > 0
    consumer.close()
    cluster[3].start()
