"""A whole worker whose tasks run on Celery workers: the same REST API, and no line is lost when one of them dies."""

import subprocess
from collections.abc import Iterator
from functools import partial
from operator import eq
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from connect.executors.celery.desired_tasks import DesiredTasks
from connect.settings import ConnectSettings
from connect.stores.states import TaskId
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.celery_workers import CeleryWorkers
from tests.support.connect import ConnectProcess
from tests.support.redis_server import RedisServer


@pytest.fixture
def settings(broker: BrokerProcess, redis_server: RedisServer, name: str) -> dict[str, str]:
    return {
        "executor": "celery",
        "celery.broker.url": redis_server.url,
        "celery.queue": name,
        "celery.lease.ms": "1500",
        "offset.flush.interval.ms": "200",
    }


@pytest.fixture
def worker(broker: BrokerProcess, settings: dict[str, str], tmp_path: Path, name: str) -> Iterator[ConnectProcess]:
    with ConnectProcess(tmp_path, bootstrap=broker.bootstrap, group=name, settings=settings) as process:
        yield process


@pytest.fixture
def celery(worker: ConnectProcess, tmp_path: Path) -> Iterator[CeleryWorkers]:
    workers = CeleryWorkers(tmp_path, worker.settings)
    workers.start()
    workers.start()
    yield workers
    workers.kill()


def test_lines_of_a_file_arrive_although_celery_workers_die(
    broker: BrokerProcess, worker: ConnectProcess, celery: CeleryWorkers, tmp_path: Path, name: str
) -> None:
    topic, file = f"{name}-lines", tmp_path / "lines.txt"
    create_topic(broker, topic)
    file.write_text("line 0\n")
    worker.create("lines", _config(file, topic))
    arrived = _Arrived(broker, topic)
    arrived.wait_for("line 0")
    worker.wait_for("lines", "RUNNING")
    for number in range(1, 4):
        victim = _owner(worker, celery)
        with file.open("a") as lines:
            lines.write(f"line {number}\n")
        victim.kill()
        victim.wait()
        celery.start()
        arrived.wait_for(f"line {number}")
    assert set(arrived.lines) == {f"line {number}" for number in range(4)}
    owner = _owners(worker)[0].partition("/")[0]
    eventually(lambda: worker.wait_for("lines", "RUNNING")["tasks"][0]["worker_id"], partial(eq, owner))
    worker.json("PUT", "/connectors/lines/pause")
    worker.wait_for("lines", "PAUSED")
    worker.delete("lines")
    eventually(lambda: not _owners(worker))
    arrived.close()


def test_a_leader_that_was_killed_finds_its_tasks_again(
    broker: BrokerProcess, worker: ConnectProcess, celery: CeleryWorkers, tmp_path: Path, name: str
) -> None:
    topic, file = f"{name}-lines", tmp_path / "lines.txt"
    create_topic(broker, topic)
    file.write_text("before\n")
    worker.create("lines", _config(file, topic))
    arrived = _Arrived(broker, topic)
    arrived.wait_for("before")
    worker.kill()
    with file.open("a") as lines:
        lines.write("meanwhile\n")
    arrived.wait_for("meanwhile")
    worker.start()
    worker.wait_for("lines", "RUNNING")
    with file.open("a") as lines:
        lines.write("after\n")
    arrived.wait_for("after")
    arrived.close()


def _config(file: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "tasks.max": "1",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


class _Arrived:
    """What a foreign consumer has read so far."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.lines: list[str] = []
        self._consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
        )
        self._consumer.subscribe([topic])

    def wait_for(self, line: str) -> None:
        """Read until it has come."""

        def read() -> list[str]:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.lines.append((message.value() or b"").decode())
            return self.lines

        eventually(read, lambda lines: line in lines, timeout_s=60, pause_s=0)

    def close(self) -> None:
        self._consumer.close()


def _owners(worker: ConnectProcess) -> list[str]:
    """Names of the Celery workers that own a task, as Redis tells."""
    desired = DesiredTasks(ConnectSettings.parse(worker.settings))
    try:
        (seen,) = desired.survey([TaskId("lines", 0)]).tasks
        return [seen.owner] if seen.held_s else []
    finally:
        desired.close()


def _owner(worker: ConnectProcess, celery: CeleryWorkers) -> "subprocess.Popen[bytes]":
    (owner,) = eventually(lambda: _owners(worker))
    return celery.processes[owner.partition("@")[0]]
