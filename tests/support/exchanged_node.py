"""A node whose data folders Caudal and Apache Kafka open in turn, and everything that a client can see in them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec, ResourceType, TopicMetadata
from confluent_kafka.cimpl import Consumer

from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import SystemClock
from tests.support.broker import BrokerProcess
from tests.support.clients.model import TIMEOUT_S
from tests.support.cluster import ClusterNode, free_port
from tests.support.kafka import SMALL_JAVA, KafkaNode
from tests.support.log_check import check_data_directory
from tests.support.mixed_cluster import FEATURES_WE_LACK
from tests.support.patience import eventually
from tests.support.wire import WireConnection

NOW_MS: Final = SystemClock().now_ms()
"""The brokers forget producers that have not written for a day, by the time of their records."""

Picture: TypeAlias = dict[str, Any]

_BAD_NEWS: Final = re.compile(
    r"\] ERROR |Recovering unflushed segment|rebuilding index|[Cc]orrupt|\"level\": \"(WARNING|ERROR|CRITICAL)\""
)
_EXPECTED: Final = re.compile(
    r"partition=__cluster_metadata-0|Error processing append|EventPerformanceMonitor|setting has no effect"
)
"""Kafka recovers its metadata log at each start, whoever wrote it, and takes refused requests and delays for errors."""
_RACE_IN_KAFKA: Final = re.compile(
    r".*\] ERROR .*'kafka-log-retention'\n.*Compaction for partition \S+ cannot be resumed since it is not paused"
)
"""Retention that begins just when a broker of Kafka becomes the leader of its partitions; it is tried again."""
_DYNAMIC: Final = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
}


class ExchangedNode:
    """Broker and controller in one; the same folders, ports and settings for both kinds."""

    def __init__(self, directory: Path, *, features: Mapping[str, int] = FEATURES_WE_LACK) -> None:
        self.folders = [directory / "one", directory / "two"]
        settings = {
            "log.dirs": ",".join(map(str, self.folders)),
            "log.flush.start.offset.checkpoint.interval.ms": "500",
            "log.cleaner.dedupe.buffer.size": "2000000",  # twice the default is more than the small Java has
        }
        caudal = ClusterNode(directory / "caudal", node_id=1, settings=settings)
        kafka = KafkaNode(directory / "kafka", node_id=1, settings=settings, features=features, java_options=SMALL_JAVA)
        kafka._port, kafka.controller_port = caudal._port, caudal.controller_port = free_port(), free_port()
        kafka.quorum = {"controller.quorum.voters": kafka.voter}
        caudal.data = kafka.data = self.folders[0]
        self.kinds: dict[str, ClusterNode | KafkaNode] = {"caudal": caudal, "kafka": kafka}

    @contextmanager
    def opened_by(self, kind: str, *, kill: bool = False) -> Iterator[BrokerProcess]:
        """The node as one kind of broker, which is stopped cleanly at the end unless it is killed."""
        node = self.kinds[kind]
        try:
            node.start()
            yield node
            node.kill() if kill else node.stop()
        finally:
            if node.is_running:
                node.kill()
        if not kill:
            for folder in self.folders:
                assert [report.problems for report in check_data_directory(folder) if report.problems] == []

    def complaints(self) -> list[str]:
        """What either kind found wrong with the folders so far."""
        lines = [line for node in self.kinds.values() for line in _RACE_IN_KAFKA.sub("", node.log_text()).splitlines()]
        return [line for line in lines if _BAD_NEWS.search(line) and not _EXPECTED.search(line)]


def picture(broker: BrokerProcess, *, times: Mapping[str, list[int]], groups: list[str]) -> Picture:
    """Everything that must be the same whichever kind of broker has the folders."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    found = eventually(lambda: admin.list_topics(timeout=TIMEOUT_S).topics, _are_led)
    topics = sorted(name for name in found if not name.startswith("__"))
    return {
        "records": {f"{level} {topic}": read(broker, topic, level) for topic in topics for level in ISOLATION},
        "offsets": {topic: _offsets(admin, topic, times.get(topic, [])) for topic in topics},
        "configs": {str(resource): _configs(admin, resource) for resource in _resources(topics)},
        "committed": {group: _committed(admin, group) for group in groups},
    }


ISOLATION: Final = ("read_committed", "read_uncommitted")


def read(broker: BrokerProcess, topic: str, level: str) -> list[tuple[object, ...]]:
    """The records of a topic's only partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "reads without joining",
            "isolation.level": level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    found: list[tuple[object, ...]] = []
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
        consumer.assign([TopicPartition(topic, 0, low)])
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing more of {topic} after {found[-1:]}"
            if message.error():
                return found
            found.append((message.offset(), message.key(), message.value(), message.headers(), message.timestamp()))
    finally:
        consumer.close()


def send(broker: BrokerProcess, topic: str, *, producer_id: int, sequence: int, records: int = 5) -> tuple[int, int]:
    """Produce a batch with this sequence number; returns the error code and the offset."""
    batch = build_batch(
        [Record(timestamp=NOW_MS, value=b"number %d" % (sequence + number)) for number in range(records)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    with WireConnection(broker.address) as connection:
        answer = connection.request(request, 9, ProduceResponse).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def _are_led(topics: Mapping[str, TopicMetadata]) -> bool:
    return all(part.leader >= 0 and not part.error for topic in topics.values() for part in topic.partitions.values())


def _offsets(admin: AdminClient, topic: str, times: list[int]) -> list[tuple[int, int]]:
    specs = [OffsetSpec.earliest(), OffsetSpec.latest(), *map(OffsetSpec.for_timestamp, times)]
    found = []
    for spec in specs:
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            asked = admin.list_offsets({TopicPartition(topic, 0): spec}, isolation_level=level)
            result = next(iter(asked.values())).result(TIMEOUT_S)
            found.append((result.offset, result.timestamp))
    return found


def _resources(topics: list[str]) -> list[ConfigResource]:
    names = [(ResourceType.TOPIC, topic) for topic in topics]
    return [ConfigResource(kind, name) for kind, name in [*names, (ResourceType.BROKER, "1")]]


def _configs(admin: AdminClient, resource: ConfigResource) -> dict[str, str | None]:
    found = next(iter(admin.describe_configs([resource]).values())).result(TIMEOUT_S)
    return {name: entry.value for name, entry in found.items() if ConfigSource(entry.source) in _DYNAMIC}


def _committed(admin: AdminClient, group: str) -> list[tuple[str, int, int, str | None]]:
    def ask() -> list[tuple[str, int, int, str | None]]:
        futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = futures[group].result(TIMEOUT_S).topic_partitions or []
        return sorted((part.topic, part.partition, part.offset, part.metadata) for part in found)

    return eventually(ask)
