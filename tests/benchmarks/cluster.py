"""Three brokers that keep three replicas of everything, beside three Apache Kafka brokers if KAFKA_JARS names them.

Both clusters have the same settings and take turns: each round starts one, measures it and stops it, then the other.
The client shares the two cores with the brokers, so a rate says what the machine does with all of them.
"""

import os
import shutil
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.benchmarks.measure import AS_DELIVERED, GB, MB, Row, Sizes, cpu_seconds, percentile
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import FAST_FAILOVER, BrokerCluster
from tests.support.kafka import KAFKA_JARS, KafkaNode

_PARTITIONS: Final = 6
_SETTINGS: Final[Mapping[str, str]] = {**AS_DELIVERED, **FAST_FAILOVER}
_RECORDS_PER_SECOND: Final = 1_000
_FAILOVER_PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Three running brokers."""

    nodes: Mapping[int, BrokerProcess]
    bootstrap: str

    def cpu_seconds(self) -> float:
        """Processor time of all brokers so far."""
        return sum(cpu_seconds(node.pid) for node in self.nodes.values())

    def memory_mb(self) -> float:
        """Resident memory of all brokers."""
        return sum(psutil.Process(node.pid).memory_info().rss for node in self.nodes.values()) / MB

    def create(self, topic: str, partitions: int) -> AdminClient:
        """Create a topic with three replicas, and wait until all are in sync."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(60)
        eventually(lambda: self._are_in_sync(admin, topic, partitions))
        return admin

    @staticmethod
    def _are_in_sync(admin: AdminClient, topic: str, count: int) -> bool:
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
        return len(partitions) == count and all(len(partition.isrs) == 3 for partition in partitions.values())


@contextmanager
def _caudal(directory: Path) -> Iterator[_Cluster]:
    with BrokerCluster(directory, settings=_SETTINGS) as brokers:
        yield _Cluster(dict(brokers.nodes), brokers.bootstrap)


@contextmanager
def _kafka(directory: Path) -> Iterator[_Cluster]:
    nodes = {n: KafkaNode(directory / f"node-{n}", settings=_SETTINGS, node_id=n) for n in (1, 2, 3)}
    for node in nodes.values():
        node.quorum = {"controller.quorum.voters": ",".join(each.voter for each in nodes.values())}
    try:
        starts = [threading.Thread(target=node.start) for node in nodes.values()]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        yield _Cluster(dict(nodes), ",".join(node.address for node in nodes.values()))
    finally:
        for node in nodes.values():
            node.kill()


def cluster(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Throughput, processor time, latency, failover and memory with three replicas and `acks=all`."""
    contenders = {"Caudal": _caudal} | ({"Kafka": _kafka} if KAFKA_JARS else {})
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contenders}
    for number in range(sizes.cluster_rounds):
        for name, start in contenders.items():
            home = directory / f"{name}-{number}"
            os.sync()
            with start(home) as brokers:
                for what, value in _measure(brokers, sizes):
                    found[name][what].append(value)
            shutil.rmtree(home, ignore_errors=True)
    how = f"replication factor 3, acks=all, median of {sizes.cluster_rounds} rounds in turn"
    for figure in _FIGURES:
        values = {name: statistics.median(figures[figure.what]) for name, figures in found.items()}
        yield Row(
            what=f"cluster: {figure.what}", result=figure.text(values), aim=figure.aim, how=f"{figure.how}; {how}"
        )


@dataclass(frozen=True, slots=True)
class _Figure:
    what: str
    unit: str
    how: str
    aim: str

    def text(self, values: Mapping[str, float]) -> str:
        """The figures of all contenders, and how ours compares with theirs."""
        parts = [f"{name} {value:,.4g} {self.unit}" for name, value in values.items()]
        ratios = [f"{values['Caudal'] / other:.2f} x" for name, other in values.items() if name != "Caudal"]
        return ", ".join([*parts, *ratios])


_LIBRARY: Final = f"confluent-kafka, idempotent, linger 5 ms, {_PARTITIONS} partitions"
_FIGURES: Final = (
    _Figure("produce 1 KB", "MB/s", _LIBRARY, "≥ Kafka"),
    _Figure("produce 1 KB, brokers' processor time", "CPU-s/GB", "all three brokers together", "≤ Kafka"),
    _Figure("produce 100 B", "k/s", _LIBRARY, "≥ Kafka"),
    _Figure("produce 100 B, brokers' processor time", "CPU-s/GB", "all three brokers together", "≤ Kafka"),
    _Figure("acknowledged after, p50", "ms", f"{_RECORDS_PER_SECOND} records/s of 100 B, linger 0", ""),
    _Figure("acknowledged after, p99", "ms", f"{_RECORDS_PER_SECOND} records/s of 100 B, linger 0", "≤ Kafka"),
    _Figure("next acknowledged write after a kill", "s", "leader killed, 3 s sessions", "≤ 5 s"),
    _Figure("memory, idle", "MB", "resident, three brokers", "a tenth of Kafka"),
    _Figure("memory, after load", "MB", "resident, three brokers", "a tenth of Kafka"),
)


def _measure(brokers: _Cluster, sizes: Sizes) -> Iterator[tuple[str, float]]:
    yield "memory, idle", brokers.memory_mb()
    _produce(brokers, "warm-up", 1_000, sizes.cluster_messages // 2)
    rate, cost = _produce(brokers, "kilobytes", 1_000, sizes.cluster_messages)
    yield "produce 1 KB", rate / MB
    yield "produce 1 KB, brokers' processor time", cost
    rate, cost = _produce(brokers, "small", 100, 3 * sizes.cluster_messages)
    yield "produce 100 B", rate / 100 / 1_000
    yield "produce 100 B, brokers' processor time", cost
    waits = _latencies(brokers, sizes.cluster_latency_messages)
    yield "acknowledged after, p50", percentile(waits, 0.5) * 1000
    yield "acknowledged after, p99", percentile(waits, 0.99) * 1000
    yield "memory, after load", brokers.memory_mb()
    yield "next acknowledged write after a kill", _failover(brokers)


def _produce(brokers: _Cluster, topic: str, record_bytes: int, count: int) -> tuple[float, float]:
    """Bytes per second, and processor seconds of all brokers per gigabyte."""
    brokers.create(topic, _PARTITIONS)
    producer = _producer(brokers, **{"linger.ms": 5, "batch.size": 1_000_000})
    value = bytes(record_bytes)
    os.sync()
    before, started = brokers.cpu_seconds(), time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
        if not number % 1_000:
            producer.poll(0)
    assert producer.flush(300) == 0, "records were not acknowledged"
    payload = count * record_bytes
    return payload / (time.perf_counter() - started), (brokers.cpu_seconds() - before) / payload * GB


def _latencies(brokers: _Cluster, count: int) -> Sequence[float]:
    """Seconds from produce() to the acknowledgement, at a steady rate."""
    topic = "latency"
    brokers.create(topic, _PARTITIONS)
    producer = _producer(brokers, **{"linger.ms": 0})
    waits: list[float] = []

    def on_delivery(begun: float) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, _message: Message) -> None:
            assert error is None, error
            waits.append(time.perf_counter() - begun)

        return note

    started = time.perf_counter()
    for number in range(count):
        producer.produce(
            topic, bytes(100), partition=number % _PARTITIONS, on_delivery=on_delivery(time.perf_counter())
        )
        while (left := started + (number + 1) / _RECORDS_PER_SECOND - time.perf_counter()) > 0:
            producer.poll(left)
    assert producer.flush(60) == 0, "records were not acknowledged"
    return waits[len(waits) // 10 :]  # the first ones open connections


def _failover(brokers: _Cluster) -> float:
    """Seconds from the kill of a leader until a record that was written after it is acknowledged."""
    topic = "failover"
    admin = brokers.create(topic, 1)
    producer = _producer(brokers, **{"linger.ms": 0})
    leader = admin.list_topics(topic, timeout=60).topics[topic].partitions[0].leader
    acknowledged: list[float] = []
    producer.produce(topic, b"before", partition=0)
    assert producer.flush(60) == 0, "the first record was not acknowledged"
    brokers.nodes[leader].kill()
    killed = time.perf_counter()

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is None:
            acknowledged.append(time.perf_counter())

    while not acknowledged and time.perf_counter() < killed + 120:
        producer.produce(topic, b"after", partition=0, on_delivery=on_delivery)
        producer.poll(_FAILOVER_PAUSE_S)
    assert acknowledged, "no record was acknowledged after the kill of the leader"
    return acknowledged[0] - killed


def _producer(brokers: _Cluster, **settings: float) -> Producer:
    return Producer(
        {"bootstrap.servers": brokers.bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0, **settings}
    )
