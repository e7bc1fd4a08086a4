"""Real tasks in each executor: what becomes of them is told in the status topic."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.executors.celery.executor import CeleryExecutor
from connect.executors.hosts.process import settings_text
from connect.executors.in_process import InProcess
from connect.runtime.executor import Executor
from connect.runtime.models import State, Target, TaskId, TaskPlan
from connect.settings import ConnectSettings
from connect.stores.statuses import Status, StatusStore
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.redis_server import RedisServer
from tests.support.service import REPOSITORY

WORKER = [sys.executable, "-m", "connect.executors.celery.worker"]
CELERY = [sys.executable, "-m", "celery", "-A", "connect.executors.celery.app", "worker", "--concurrency", "1"]


@pytest.fixture
def settings(broker: BrokerProcess, redis_server: RedisServer, name: str) -> ConnectSettings:
    return ConnectSettings(
        bootstrap_servers=(broker.bootstrap,),
        group_id=name,
        config_storage_topic=f"{name}-configs",
        offset_storage_topic=f"{name}-offsets",
        status_storage_topic=f"{name}-status",
        offset_storage_partitions=1,
        status_storage_partitions=1,
        celery_broker_url=redis_server.url,
        celery_queue=name,
        celery_lease_ms=1000,
    )


@pytest.fixture
def statuses(settings: ConnectSettings) -> Iterator[StatusStore]:
    store = StatusStore(settings)
    store.start()
    yield store
    store.stop()


def _told(executor: Executor, statuses: StatusStore) -> Status:
    """What is told of a task whose connector does not exist."""
    config = {"name": "c", "connector.class": "Missing"}
    task = TaskId("c", 0)
    executor.start(
        TaskPlan(
            id=task, connector_config=config, task_config=config, target=Target.STARTED, generation=1, worker_id="w:1"
        )
    )
    try:
        told = eventually(lambda: statuses.task(task), lambda status: status is not None)
        eventually(lambda: executor.running_tasks() == set())
    finally:
        executor.close()
    assert told is not None
    return told


@pytest.mark.parametrize("processes", [0, 1])
def test_a_task_of_this_machine_tells_how_it_fares(
    settings: ConnectSettings, statuses: StatusStore, processes: int
) -> None:
    told = _told(InProcess(settings.replace(task_processes=processes)), statuses)
    assert told.state is State.FAILED
    assert "Missing" in (told.trace or "")


@pytest.mark.parametrize("start", ["own command", "celery's command", "celery's command with threads"])
def test_a_task_of_a_celery_worker_tells_how_it_fares(
    settings: ConnectSettings, statuses: StatusStore, start: str, tmp_path: Path
) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings_text(settings).items()))
    environment = {**os.environ, "CAUDAL_CONNECT_CONFIG": str(file)}
    command = {
        "own command": [*WORKER, "--config", str(file), "--", "--concurrency", "1"],
        "celery's command": CELERY,
        "celery's command with threads": [*CELERY, "--pool", "threads"],
    }[start]
    with (tmp_path / "worker.log").open("ab") as log:
        worker = subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log, env=environment)
    try:
        told = _told(CeleryExecutor(settings), statuses)
        worker.terminate()
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
    assert told.state is State.FAILED
    assert "Missing" in (told.trace or "")
    assert told.worker_id.startswith("celery@")


def test_a_wrong_setting_ends_the_celery_worker_with_its_name() -> None:
    done = subprocess.run(
        [*WORKER, "--set", "celery.lease.ms=1"], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "celery.lease.ms=1: must be at least 1000" in done.stderr
