"""Files and made-up records through a real worker: in, out, and each once when the worker is killed."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess

JSON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture(scope="module")
def worker(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    """A worker that writes records of sources in transactions where it is asked to."""
    settings = {"exactly.once.source.support": "enabled", "task.processes": "0"}
    directory = tmp_path_factory.mktemp("connect-files")
    with ConnectProcess(directory, bootstrap=broker.bootstrap, group="files", settings=settings) as process:
        yield process
        assert process.is_running, process.log_tail()


def committed(broker: BrokerProcess, topic: str) -> list[bytes]:
    """The values of a topic of one partition that are not in a transaction that was given up."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        while True:
            message = consumer.poll(60)
            if message is None or message.error() is not None:
                return found
            found.append(message.value() or b"")
    finally:
        consumer.close()


def rows(folder: Path) -> list[Any]:
    """What is in finished files."""
    files = sorted((folder / "topics").rglob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def has_more_than(folder: Path, count: int) -> bool:
    return len(rows(folder)) > count


def arrive(folder: Path, name: str, numbers: range, *, bad: bool = False) -> None:
    """A file comes, whole."""
    lines = [json.dumps({"id": number}) for number in numbers] + ["{"] * bad
    hidden = folder / f".{name}"
    hidden.write_text("\n".join([*lines, ""]))
    hidden.rename(folder / name)


def test_files_go_through_kafka_once_and_bad_lines_to_dead_letters_while_the_worker_is_killed(
    worker: ConnectProcess, broker: BrokerProcess, name: str, tmp_path: Path
) -> None:
    incoming, done, out = tmp_path / "in", tmp_path / "done", tmp_path / "out"
    incoming.mkdir()
    create_topic(broker, name)
    source = {
        "connector.class": "DirectorySource",
        "path": str(incoming),
        "topic": name,
        "batch.size": "100",
        "finished.policy": "move",
        "finished.path": str(done),
        "file.minimum.age.ms": "0",
        "exactly.once.support": "required",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        **JSON,
    }
    sink = {
        "connector.class": "DirectorySink",
        "topics": name,
        "path": str(out),
        "flush.size": "70",
        "rotate.schedule.interval.ms": "300",
        "consumer.override.isolation.level": "read_committed",
        **JSON,
    }
    worker.create(f"{name}-source", source)
    worker.create(f"{name}-sink", sink)
    total = 0
    for turn in range(3):
        for part in range(5):
            arrive(incoming, f"{turn}-{part}.json", range(total, total + 1000), bad=part == 0)
            total += 1000
        eventually(partial(has_more_than, out, total - 4000), timeout_s=60)
        worker.restart(kill=True)
    wanted = list(range(total))
    try:
        eventually(lambda: len(rows(out)) >= total, timeout_s=60)
        assert sorted(row["id"] for row in rows(out)) == wanted
        assert [json.loads(value)["id"] for value in committed(broker, name)] == wanted
        assert len(committed(broker, f"{name}-dead")) >= 3
        eventually(lambda: list(incoming.iterdir()) == [], timeout_s=30)
        assert len(list(done.iterdir())) == 15
    finally:
        worker.delete(f"{name}-source")
        worker.delete(f"{name}-sink")


def test_a_configuration_of_confluents_datagen_runs_as_it_is(
    worker: ConnectProcess, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    config = {
        "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
        "kafka.topic": name,
        "quickstart": "users",
        "max.interval": 0,
        "iterations": 1000,
        "tasks.max": "1",
        **JSON,
    }
    worker.create(name, config)
    try:
        found = eventually(lambda: committed(broker, name), lambda values: len(values) >= 1000, timeout_s=30)
        worker.wait_for(name, "RUNNING")
        assert len(found) == 1000
        assert set(json.loads(found[0])) == {"registertime", "userid", "regionid", "gender"}
    finally:
        worker.delete(name)
