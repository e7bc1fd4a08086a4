"""Tasks on Celery workers while the brokers of a cluster die one after the other: every line arrives exactly once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually
from tests.support.celery_workers import CeleryWorkers
from tests.support.cluster import BrokerCluster
from tests.support.connect import ConnectProcess
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.timeout(300)

TOPIC = "lines"
PATIENCE_S = 120.0


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path / "brokers") as cluster:
        yield cluster


@pytest.fixture
def worker(brokers: BrokerCluster, redis_server: RedisServer, tmp_path: Path, name: str) -> Iterator[ConnectProcess]:
    settings = {"executor": "celery", "celery.broker.url": redis_server.url, "celery.queue": name}
    with ConnectProcess(tmp_path / "worker", bootstrap=brokers.bootstrap, group=name, settings=settings) as process:
        yield process


@pytest.fixture
def celery(worker: ConnectProcess, tmp_path: Path) -> Iterator[CeleryWorkers]:
    workers = CeleryWorkers(tmp_path, worker.settings)
    workers.start()
    yield workers
    workers.kill()


def test_lines_of_a_file_arrive_once_although_brokers_die(
    brokers: BrokerCluster, worker: ConnectProcess, celery: CeleryWorkers, tmp_path: Path
) -> None:
    admin = Admin(ClientSettings(bootstrap_servers=brokers.bootstrap, properties={"log_level": "0"}))
    admin.create_topic(TOPIC, partitions=1)
    file = tmp_path / "lines.txt"
    file.write_text("line 0\n")
    worker.create("lines", config(file))
    arrived = Arrived(brokers.bootstrap)
    arrived.wait_for("line 0")
    for number in (1, 2):
        brokers[number].kill()
        with file.open("a") as lines:
            lines.write(f"line {number}\n")
        arrived.wait_for(f"line {number}")
        brokers.start([number])
        eventually(lambda: all_in_sync(admin), timeout_s=PATIENCE_S)
    assert arrived.lines == [f"line {number}" for number in range(3)]
    arrived.close()
    worker.wait_for("lines", "RUNNING")
    # Connect's own topics as well as those of its connectors.
    assert {len(partition.replicas) for topic in admin.all_topics() for partition in topic.partitions} == {3}
    assert "the task failed" not in celery.log_text() + worker.log_text()


def config(file: Path) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": TOPIC,
        "tasks.max": "1",
        "exactly.once.support": "required",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


def all_in_sync(admin: Admin) -> bool:
    return all(
        len(partition.in_sync) == len(partition.replicas)
        for topic in admin.all_topics()
        for partition in topic.partitions
    )


class Arrived:
    """What a foreign consumer has read so far."""

    def __init__(self, bootstrap: str) -> None:
        self.lines: list[str] = []
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "judge", "auto.offset.reset": "earliest", "log_level": 0}
        )
        self._consumer.subscribe([TOPIC])

    def wait_for(self, line: str) -> None:
        """Read until it has come."""

        def read() -> list[str]:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.lines.append((message.value() or b"").decode())
            return self.lines

        eventually(read, lambda lines: line in lines, timeout_s=PATIENCE_S, pause_s=0)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
