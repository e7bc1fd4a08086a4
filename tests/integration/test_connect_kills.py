"""Kill -9 of everything, at random moments under load: nothing is lost, and nothing is doubled where that is promised.

A short round is part of `make test`; `KILLS=30 pytest tests/integration/test_connect_kills.py` makes it a long one.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.connect_load import Pipelines, Progress, kill_a_host
from tests.support.postgres import PostgresServer, running_server

_KILLS = int(os.environ.get("KILLS", "6"))


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    with running_server(fsync=True) as server:
        yield server


@pytest.mark.timeout(120 + 30 * _KILLS)
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
        for name in ("upserts", "inserts", "files", "lines"):
            worker.wait_for(name, "RUNNING")

        def kill_database() -> None:
            own_postgres.stop(immediately=True)
            own_postgres.start()

        kills: dict[str, Callable[[], object]] = {
            "worker": lambda: worker.restart(kill=True),
            "task process": lambda: kill_a_host(worker),
            "database": kill_database,
            "broker": lambda: broker.restart(kill=True),
        }
        chooser = random.Random(os.environ.get("KILL_SEED"))
        order = [what for _ in range(_KILLS // len(kills) + 1) for what in chooser.sample(sorted(kills), len(kills))]
        pipelines.start()
        progress = Progress(pipelines)
        stood_still: list[tuple[str, float]] = []
        for what in order[:_KILLS]:
            pipelines._stopping.wait(chooser.uniform(0.1, 2.0))
            kills[what]()
            stood_still.append((what, round(progress.seconds_until_work_resumes(), 1)))
        pipelines.stop()
        found = pipelines.judge()
    print(f"sent {pipelines.sent}, written {pipelines.written}, stood still {stood_still}")  # noqa: T201 - for long rounds
    assert found == {"upserts": (0, 0), "inserts": (0, 0), "files": (0, 0), "lines": (0, 0)}, stood_still
