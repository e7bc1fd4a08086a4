"""Data folders that Caudal and Apache Kafka open in turn: nothing is lost, nothing is repaired."""

from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.support.broker import BrokerProcess
from tests.support.clients.model import TIMEOUT_S
from tests.support.exchanged_node import NOW_MS, ExchangedNode, Picture, picture, read, send
from tests.support.mixed_cluster import MixedCluster, needs_kafka
from tests.support.patience import eventually
from tests.support.service import ServiceFailed
from tests.support.wire import WireConnection

pytestmark = needs_kafka

DAY_MS: Final = 24 * 3600 * 1000
BEGIN_MS: Final = NOW_MS - 40 * DAY_MS
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
KEEP: Final = {"retention.ms": "-1"}
MANY_SEGMENTS: Final = {**KEEP, "segment.ms": str(DAY_MS)}
TOPICS: Final[dict[str, dict[str, str]]] = {
    "times": MANY_SEGMENTS,
    "compacted": {**MANY_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "transactions": KEEP,
    "sequences": KEEP,
    "empty": KEEP,
    "deleted": {**KEEP, "file.delete.delay.ms": "600000"},
    **{f"codec-{codec}": {**KEEP, "compression.type": "producer"} for codec in CODECS},
}
TIMES: Final = {"times": [BEGIN_MS + day * DAY_MS for day in range(-1, 32, 4)]}
GROUPS: Final = {"classic": "of the classic protocol", "consumer": "of the new protocol"}
OTHER: Final = {"caudal": "kafka", "kafka": "caudal"}


class Furnishings:
    """What the folders get in their first life, and clients that outlive the broker they were connected to."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.settings: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.address, "log_level": 0}
        self.admin = AdminClient(self.settings)
        futures = self.admin.create_topics([NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()])
        for future in futures.values():
            future.result(TIMEOUT_S)
        self._write_records()
        self.admin.delete_records([TopicPartition("times", 0, 7)])[TopicPartition("times", 0)].result(TIMEOUT_S)
        self.open_transaction = self._write_transactions()
        self._alter_configs()
        for protocol, group in GROUPS.items():
            self.commit(protocol, group)
        eventually(lambda: len(read(broker, "compacted", "read_committed")), lambda count: count < 40)
        with WireConnection(broker.address) as connection:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            self.producer_id = connection.request(request, 4, InitProducerIdResponse).producer_id
        assert self.producer_id >= 0
        assert send(broker, "sequences", producer_id=self.producer_id, sequence=0) == (0, 0)
        self.sequence = 5
        self.admin.delete_topics(["deleted"])["deleted"].result(TIMEOUT_S)

    def _write_records(self) -> None:
        for codec in CODECS:
            producer = Producer({**self.settings, "compression.type": codec, "linger.ms": 50})
            for number in range(50):
                headers: list[tuple[str, str | bytes | None]] = [("first", b"1"), ("second", None)]
                producer.produce(f"codec-{codec}", f"value {number} " * 9, f"key {number}", headers=headers)
            assert producer.flush(TIMEOUT_S) == 0
        producer = Producer({**self.settings, "linger.ms": 0, "batch.num.messages": 1})
        for number in range(60):
            moment = BEGIN_MS + number * DAY_MS // 2
            producer.produce("times", f"{number}" * 2000, timestamp=moment)
            producer.produce("compacted", f"value {number}", f"key {number % 3}", timestamp=moment)
            producer.produce("deleted", "gone")
        assert producer.flush(TIMEOUT_S) == 0

    def _write_transactions(self) -> Producer:
        def writer(name: str) -> Producer:
            producer = Producer({**self.settings, "transactional.id": name, "transaction.timeout.ms": 600_000})
            producer.init_transactions(TIMEOUT_S)
            return producer

        one = writer("one")
        for number in range(6):
            one.begin_transaction()
            one.produce("transactions", f"transaction {number}")
            (one.commit_transaction if number % 2 else one.abort_transaction)(TIMEOUT_S)
        other = writer("other")
        other.begin_transaction()
        other.produce("transactions", "left open")
        assert other.flush(TIMEOUT_S) == 0
        return other

    def _alter_configs(self) -> None:
        changes = {
            ConfigResource(ResourceType.TOPIC, "times"): ("max.message.bytes", "2000000"),
            ConfigResource(ResourceType.BROKER, "1"): ("message.max.bytes", "2000000"),
        }
        for resource, (name, value) in changes.items():
            entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            resource.add_incremental_config(entry)
        for future in self.admin.incremental_alter_configs(list(changes)).values():
            future.result(TIMEOUT_S)

    def commit(self, protocol: str, group: str) -> None:
        """Read some more as a member of a group, and commit it."""
        consumer = Consumer(
            {**self.settings, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["codec-gzip", "times"])
        eventually(lambda: consumer.consume(10, 1), pause_s=0)
        consumer.commit(asynchronous=False)
        consumer.close()

    def picture(self, broker: BrokerProcess) -> Picture:
        """What clients see now."""
        return picture(broker, times=TIMES, groups=list(GROUPS.values()))

    def go_on(self, broker: BrokerProcess) -> None:
        """Write where the broker before has stopped: its producers are known."""
        producer_id, last, following = self.producer_id, self.sequence - 5, self.sequence
        assert send(broker, "sequences", producer_id=producer_id, sequence=following + 1)[0] == 45, "a gap"
        assert send(broker, "sequences", producer_id=producer_id, sequence=last) == (0, last), "a duplicate"
        assert send(broker, "sequences", producer_id=producer_id, sequence=following) == (0, following)
        self.sequence += 5
        for protocol, group in GROUPS.items():
            self.commit(protocol, group)


@pytest.mark.parametrize("first", ["caudal", "kafka"])
def test_folders_go_back_and_forth_with_nothing_lost(tmp_path: Path, first: str) -> None:
    node = ExchangedNode(tmp_path)
    with node.opened_by(first) as broker:
        furnishings = Furnishings(broker)
        before = furnishings.picture(broker)
    assert list(tmp_path.glob("*/deleted-0.*-delete"))
    with node.opened_by(OTHER[first]) as broker:
        assert furnishings.picture(broker) == before
        furnishings.go_on(broker)
        furnishings.open_transaction.commit_transaction(TIMEOUT_S)
        before = furnishings.picture(broker)
        assert before["records"]["read_committed transactions"][-1][2] == b"left open"
    for kind in (first, OTHER[first]):
        with node.opened_by(kind) as broker:
            assert furnishings.picture(broker) == before
            furnishings.go_on(broker)
            before = furnishings.picture(broker)
    assert node.complaints() == []


@pytest.mark.parametrize("first", ["caudal", "kafka"])
def test_killed_broker_leaves_folders_that_the_other_kind_recovers(tmp_path: Path, first: str) -> None:
    node = ExchangedNode(tmp_path)
    with node.opened_by(first, kill=True) as broker:
        furnishings = Furnishings(broker)
        before = furnishings.picture(broker)
        # Both kinds store this from time to time only, and forget what came later when they are killed.
        starts = [folder / "log-start-offset-checkpoint" for folder in node.folders]
        eventually(lambda: any(path.exists() and "times 0 7\n" in path.read_text() for path in starts))
    with node.opened_by(OTHER[first], kill=True) as broker:
        assert furnishings.picture(broker) == before
        furnishings.go_on(broker)
        furnishings.open_transaction.commit_transaction(TIMEOUT_S)
        before = furnishings.picture(broker)
    with node.opened_by(first) as broker:
        assert furnishings.picture(broker) == before
        furnishings.go_on(broker)


def test_folders_with_what_only_kafka_has_are_refused_unchanged(tmp_path: Path) -> None:
    node = ExchangedNode(tmp_path, features={})
    with node.opened_by("kafka"):
        pass
    before = {path: path.read_bytes() for path in tmp_path.glob("[ot]*/**/*") if path.is_file()}
    with pytest.raises(ServiceFailed, match=r"share\.version=1.*downgrade --feature share\.version=0"):
        node.kinds["caudal"].start()
    assert {path: path.read_bytes() for path in tmp_path.glob("[ot]*/**/*") if path.is_file()} == before


def test_guest_of_the_other_kind_takes_over_the_folder_of_a_broker(mixed: MixedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap})
    topics = {"first-on-4": [4, 1, 5], "first-on-1": [1, 5, 4]}
    for future in admin.create_topics([NewTopic(n, 1, replica_assignment=[on]) for n, on in topics.items()]).values():
        future.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "log_level": 0})
    for like_voters in (True, False):
        before = mixed.nodes[4]
        write(producer, list(topics))
        eventually(lambda: in_sync(mixed, list(topics)), lambda found: found == {4, 1, 5})
        before.stop()
        write(producer, list(topics))
        after = mixed.guest(4, like_voters=like_voters)
        after.data = before.data
        after.start()
        eventually(lambda: in_sync(mixed, list(topics)), lambda found: found == {4, 1, 5}, timeout_s=120)
        write(producer, list(topics))
        for topic in topics:
            eventually(partial(segments, mixed, topic), lambda found: len(found) == 1)


def write(producer: Producer, topics: list[str]) -> None:
    for number in range(500):
        producer.produce(topics[number % len(topics)], f"value {number}")
    assert producer.flush(TIMEOUT_S) == 0


def in_sync(mixed: MixedCluster, topics: list[str]) -> set[int]:
    """The brokers that are in sync for every topic.

    It takes a client of its own each time: librdkafka 2.16 may try to reach a broker at its former address for a
    minute before it answers, in clusters of Kafka alone, too.
    """
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap, "log_level": 0})
    described = admin.describe_topics(TopicCollection(topics)).values()
    return set.intersection(*({node.id for node in found.result(TIMEOUT_S).partitions[0].isr} for found in described))


def segments(mixed: MixedCluster, topic: str) -> set[bytes]:
    """What the replicas have stored: one element if they agree."""
    folders = [node.data / f"{topic}-0" for node in mixed.nodes.values() if (node.data / f"{topic}-0").exists()]
    assert len(folders) == 3
    return {b"".join(file.read_bytes() for file in sorted(folder.glob("*.log"))) for folder in folders}
