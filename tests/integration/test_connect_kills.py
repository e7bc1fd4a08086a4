"""Kill -9 of everything, at random moments under load: nothing is lost, and nothing is doubled where that is promised.

`make test` kills each part once; `KILLS=30 pytest tests/integration/test_connect_kills.py` makes it a long round.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import eq
from pathlib import Path

import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.celery_workers import CeleryWorkers
from tests.support.connect import ConnectProcess
from tests.support.connect_load import Pipelines, kill_a_host
from tests.support.postgres import PostgresServer, running_server
from tests.support.redis_server import running_redis

_KILLS = int(os.environ.get("KILLS", "0"))
"""How many; each part once if there is no number."""


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    with running_server(fsync=True) as server:
        yield server


def test_a_task_whose_process_was_killed_is_started_again_each_time(
    broker: BrokerProcess, tmp_path: Path, name: str
) -> None:
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.touch()
    text = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
    create_topic(broker, name)
    settings = {"task.processes": "1"}
    with ConnectProcess(tmp_path / "connect", bootstrap=broker.bootstrap, group=name, settings=settings) as worker:
        worker.create("source", {"connector.class": "FileStreamSource", "file": str(given), "topic": name, **text})
        worker.create("sink", {"connector.class": "FileStreamSink", "file": str(out), "topics": name, **text})
        for count in range(1, 4):
            with given.open("a") as file:
                file.write(f"{count}\n")
            eventually(lambda: _different_lines(out), partial(eq, count))
            assert kill_a_host(worker)


def _different_lines(file: Path) -> int:
    return len(set(file.read_text().split())) if file.exists() else 0


@pytest.mark.timeout(300 + 30 * _KILLS)
def test_nothing_is_lost_when_worker_task_process_database_and_broker_are_killed(
    tmp_path: Path, own_postgres: PostgresServer
) -> None:
    settings = {"task.processes": "2", "kafka.timeout.ms": "5000"}
    with (
        BrokerProcess(tmp_path / "broker") as broker,
        ConnectProcess(tmp_path / "connect", bootstrap=broker.bootstrap, settings=settings) as worker,
    ):
        pipelines = Pipelines(broker, worker, own_postgres.create_database(), tmp_path)
        pipelines.create()

        def kill_database() -> None:
            own_postgres.stop(immediately=True)
            own_postgres.start()

        kills: dict[str, Callable[[], object]] = {
            "worker": lambda: worker.restart(kill=True),
            "task process": lambda: kill_a_host(worker),
            "database": kill_database,
            "broker": lambda: broker.restart(kill=True),
        }
        _kill_and_judge(pipelines, kills)


@pytest.mark.timeout(300 + 30 * _KILLS)
def test_nothing_is_lost_when_celery_workers_and_redis_are_killed(tmp_path: Path, own_postgres: PostgresServer) -> None:
    with (
        running_redis() as redis,
        BrokerProcess(tmp_path / "broker") as broker,
        ConnectProcess(
            tmp_path / "connect",
            bootstrap=broker.bootstrap,
            settings={"executor": "celery", "celery.broker.url": redis.url, "celery.lease.ms": "2000"},
        ) as worker,
    ):
        celery = CeleryWorkers(tmp_path, worker.settings)
        for _ in range(2):
            celery.start(slots=6)
        pipelines = Pipelines(broker, worker, own_postgres.create_database(), tmp_path)
        pipelines.create()

        def kill_celery_worker() -> None:
            celery.kill_one()
            celery.start(slots=6)

        def kill_redis() -> None:
            redis.kill()
            redis.start()

        kills: dict[str, Callable[[], object]] = {
            "Celery worker": kill_celery_worker,
            "Redis": kill_redis,
            "worker": lambda: worker.restart(kill=True),
        }
        try:
            _kill_and_judge(pipelines, kills)
        finally:
            celery.kill()


def _kill_and_judge(pipelines: Pipelines, kills: Mapping[str, Callable[[], object]]) -> None:
    for name in pipelines.names:
        pipelines.worker.wait_for(name, "RUNNING")
    chooser = random.Random(os.environ.get("KILL_SEED"))
    count = _KILLS or len(kills)
    order = [what for _ in range(count // len(kills) + 1) for what in chooser.sample(sorted(kills), len(kills))]
    pipelines.start()
    stood_still: list[tuple[str, float]] = []
    for what in order[:count]:
        time.sleep(chooser.uniform(0.1, 2.0))
        kills[what]()
        stood_still.append((what, round(pipelines.seconds_until_work_resumes(), 1)))
    pipelines.stop()
    found = pipelines.judge()
    print(f"sent {pipelines.sent}, written {pipelines.written}, stood still {stood_still}")  # noqa: T201 - for long rounds
    assert found == dict.fromkeys(pipelines.names, (0, 0)), stood_still
