"""Two clusters, records that are as odd as records can be, and what foreign clients find of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CONVERTERS = {"key.converter": BYTES, "value.converter": BYTES, "header.converter": BYTES}


class Clusters(NamedTuple):
    """Where from and where to."""

    source: BrokerProcess
    target: BrokerProcess

    def config(self, **changes: str) -> dict[str, str]:
        """What every connector between the two is told."""
        return {
            "source.cluster.alias": "us",
            "target.cluster.alias": "eu",
            "source.cluster.bootstrap.servers": self.source.bootstrap,
            "target.cluster.bootstrap.servers": self.target.bootstrap,
            "admin.timeout.ms": "5000",
            **changes,
        }


@contextmanager
def running_clusters(folder: Path) -> Iterator[Clusters]:
    """Two brokers, each a cluster of its own."""
    with BrokerProcess(folder / "source") as source, BrokerProcess(folder / "target") as target:
        yield Clusters(source, target)


def make(broker: BrokerProcess, topic: str, *, partitions: int = 1) -> None:
    """A topic that keeps records, however old their times are."""
    create_topic(broker, topic, partitions=partitions, configs={"retention.ms": "-1"})


def send(broker: BrokerProcess, topic: str, numbers: Sequence[int], *, partition: int = 0) -> None:
    """Records that are as odd as records can be."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in numbers:
        producer.produce(
            topic,
            None if number % 10 == 3 else b"\x00\xff%d" % number,
            None if number % 10 == 4 else b"key-\xfe%d" % number,
            partition,
            timestamp=1_600_000_000_000 + number,
            headers=[("h", b"\x00\xff"), ("h", None), ("n", b"%d" % number)],
        )
    assert producer.flush(30) == 0


def read(broker: BrokerProcess, topic: str, partition: int = 0, *, start: int = 0, committed: bool = True) -> list[Any]:
    """All records of a partition, as values that can be compared."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "topic.metadata.propagation.max.ms": 200,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        found: list[Any] = []
        while True:
            message = consumer.poll(60)
            if message is None or message.error() is not None:
                return found
            found.append(as_value(message))
    finally:
        consumer.close()


def as_value(message: Message) -> tuple[Any, ...]:
    """All of a record that is carried over."""
    return message.key(), message.value(), message.timestamp(), message.headers()


def mirror(worker: ConnectProcess, clusters: Clusters, name: str, topics: str, **changes: str) -> None:
    """Let a worker of the target mirror topics of the source."""
    worker.create(
        name,
        {
            **clusters.config(**CONVERTERS, topics=topics),
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "refresh.topics.interval.seconds": "1",
            "sync.topic.configs.interval.seconds": "1",
            "tasks.max": "2",
            **changes,
        },
    )


def configs_of(broker: BrokerProcess, topic: str) -> set[tuple[str, str]]:
    """What was set for the topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin_client(broker).describe_configs([resource])[resource].result(60)
    return {(entry.name, entry.value) for entry in found.values() if entry.source == 1}


def read_or_none(broker: BrokerProcess, topic: str, partition: int = 0) -> list[Any]:
    """The same, and nothing when the partition does not exist."""
    topics = admin_client(broker).list_topics(timeout=60).topics
    return read(broker, topic, partition) if topic in topics and partition in topics[topic].partitions else []


def commit(broker: BrokerProcess, group: str, offsets: Mapping[int, int]) -> None:
    """What a group of a topic of the same name has read."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    places = [TopicPartition(group, partition, offset) for partition, offset in offsets.items()]

    def is_committed() -> bool:
        try:
            return consumer.commit(offsets=places, asynchronous=False) is not None
        except KafkaException:
            return False  # A coordinator that is not there yet.

    eventually(is_committed)
    consumer.close()


def committed(broker: BrokerProcess, topic: str, group: str) -> dict[int, int]:
    """What a group has committed, as a foreign client sees it."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, partition) for partition in (0, 1)], timeout=60)
        return {item.partition: item.offset for item in found}
    finally:
        consumer.close()
