"""Thirty faults at random moments under Celery workers: tasks always come back, and never run twice at once."""

import random
import time
from pathlib import Path

import psutil
import pytest

from connect.runtime.models import TaskId
from tests.support.admin import eventually
from tests.support.celery_world import LEASE_MS, CeleryWorld, LineWorker
from tests.support.line_task import assert_never_twice
from tests.support.redis_server import running_redis

FAULTS = 30
TASKS = 4


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ownership_never_doubles_under_faults(tmp_path: Path, name: str) -> None:
    chance = random.Random(5)  # the same faults in every run
    with running_redis() as redis, CeleryWorld(redis, tmp_path, name) as world:
        workers = [world.worker(letter, slots=3) for letter in "ab"]
        leader = world.executor()
        for task in range(TASKS):
            leader.start(world.plan("c", task))
        _wait_for_all(world)
        for number in range(FAULTS):
            fault = chance.choice([_kill_worker, _kill_child, _freeze_worker, _kill_redis, _flush, _change_leader])
            time.sleep(chance.random() * LEASE_MS / 1000)
            fault(world, workers, chance)
            if fault is _change_leader:
                leader.close()
                leader = world.executor()
                for task in range(TASKS):
                    leader.start(world.plan("c", task))
            for index, worker in enumerate(workers):
                if not worker.is_running:
                    workers[index] = world.worker(f"w{number}-{index}", slots=3)
            _wait_for_all(world)
        leader.stop([TaskId("c", task) for task in range(TASKS)])
        assert leader.running_tasks() == set()
    assert_never_twice(world.lines_file)


def _kill_worker(world: CeleryWorld, workers: list[LineWorker], chance: random.Random) -> None:
    chance.choice(workers).kill()


def _kill_child(world: CeleryWorld, workers: list[LineWorker], chance: random.Random) -> None:
    children = psutil.Process(chance.choice(workers).pid).children()
    chance.choice(children).kill()


def _freeze_worker(world: CeleryWorld, workers: list[LineWorker], chance: random.Random) -> None:
    worker = chance.choice(workers)
    worker.freeze()
    time.sleep(chance.random() * 2 * LEASE_MS / 1000)
    worker.thaw()


def _kill_redis(world: CeleryWorld, workers: list[LineWorker], chance: random.Random) -> None:
    world.redis.kill()
    time.sleep(chance.random() * 2 * LEASE_MS / 1000)
    world.redis.start()


def _flush(world: CeleryWorld, workers: list[LineWorker], chance: random.Random) -> None:
    with world.redis.client() as client:
        client.flushall()


def _change_leader(world: CeleryWorld, workers: list[LineWorker], chance: random.Random) -> None:
    """Done by the caller, who has it."""


def _wait_for_all(world: CeleryWorld) -> None:
    since = time.monotonic()

    def quiet() -> set[str]:
        alive = {line.task for line in world.lines(None) if line.at > since and line.word == "beat"}
        return {f"c-{task}" for task in range(TASKS)} - alive

    eventually(quiet, lambda tasks: not tasks, pause_s=0.2)
