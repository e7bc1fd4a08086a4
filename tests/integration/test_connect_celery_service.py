"""A whole worker whose tasks run on Celery workers: the same REST API, and no line is lost when one of them dies."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from connect.executors.wishes import Wishes
from connect.settings import ConnectSettings
from connect.stores.states import TaskId
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.redis_server import RedisServer
from tests.support.service import REPOSITORY

_numbers = count()


class CeleryWorkers:
    """Celery workers of one group, as an operator starts them."""

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        self._file = directory / "worker.properties"
        self._file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._log = directory / "celery.log"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start another one."""
        name = f"worker{next(_numbers)}"
        command = [sys.executable, "-m", "connect.executors.celery_worker", "--config", str(self._file)]
        options = ["--", "--concurrency", "1", "-n", f"{name}@%h", "--loglevel", "INFO"]
        with self._log.open("ab") as log:
            self.processes[name] = subprocess.Popen([*command, *options], cwd=REPOSITORY, stdout=log, stderr=log)

    def kill(self) -> None:
        """End all of them at once."""
        for process in self.processes.values():
            process.kill()
            process.wait()


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
    status = worker.wait_for("lines", "RUNNING")
    assert status["tasks"][0]["worker_id"] == _owners(worker)[0].partition("/")[0]
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
    wishes = Wishes(ConnectSettings.parse(worker.settings))
    try:
        (seen,) = wishes.survey([TaskId("lines", 0)]).tasks
        return [seen.owner] if seen.held_s else []
    finally:
        wishes.close()


def _owner(worker: ConnectProcess, celery: CeleryWorkers) -> "subprocess.Popen[bytes]":
    (owner,) = eventually(lambda: _owners(worker))
    return celery.processes[owner.partition("@")[0]]
