"""Celery workers and leaders that die or stand still: tasks go on elsewhere and never run twice at once."""

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from connect.executors.celery.tasks import RUN, create_app
from connect.runtime.models import TaskId
from tests.support.admin import eventually
from tests.support.celery_world import CeleryWorld, LineWorker
from tests.support.line_task import Line, assert_never_twice, is_running
from tests.support.redis_server import RedisServer

DEADLY = "deadly"
TASK = TaskId("c", 0)


@pytest.fixture
def world(redis_server: RedisServer, tmp_path: Path, name: str) -> Iterator[CeleryWorld]:
    """A group of workers of its own, since they are maltreated."""
    with CeleryWorld(redis_server, tmp_path, name) as own:
        yield own
    assert_never_twice(own.lines_file)


def _pair(world: CeleryWorld) -> dict[str, LineWorker]:
    return {name: world.worker(name, slots=1) for name in ("a", "b")}


def _home(workers: dict[str, LineWorker], line: Line) -> LineWorker:
    """The worker whose child wrote a line."""
    parent = psutil.Process(line.pid).ppid()
    return next(worker for worker in workers.values() if worker.pid == parent)


def test_a_task_of_a_killed_worker_goes_on_in_another(world: CeleryWorld) -> None:
    workers = _pair(world)
    world.executor().start(world.plan())
    first = world.wait_for_beat()
    _home(workers, first).kill()
    second = world.wait_for_beat(unlike=lambda line: line.run == first.run)
    assert second.epoch > first.epoch
    assert not is_running(first.pid)


def test_a_task_that_no_worker_takes_is_told_to_be_lost(world: CeleryWorld) -> None:
    worker = world.worker("alone", slots=1)
    leader = world.executor()
    lost: list[tuple[TaskId, str]] = []
    leader.on_lost = lambda task_id, reason: lost.append((task_id, reason))
    leader.start(world.plan())
    world.wait_for_beat()
    worker.kill()
    ((task_id, reason),) = eventually(lambda: lost)
    assert task_id == TASK
    assert "alone@" in reason


def test_a_wake_up_that_dies_with_its_worker_is_sent_again(world: CeleryWorld) -> None:
    world.trap.touch()
    _ = [world.worker(name, slots=1, kind=DEADLY) for name in ("a", "b")]
    world.executor().start(world.plan())
    world.wait_for_beat()
    assert not world.trap.exists()


def test_a_worker_killed_right_after_it_gave_a_task_back_takes_nothing_with_it(world: CeleryWorld) -> None:
    workers = _pair(world)
    world.executor().start(world.plan())
    first = world.wait_for_beat()
    home = _home(workers, first)
    psutil.Process(home.pid).terminate()
    eventually(lambda: any(line.word == "end" for line in world.lines()), pause_s=0.005)
    home.kill()
    world.wait_for_beat(unlike=lambda line: line.run == first.run)


def test_messages_of_a_leader_that_died_start_the_task_once(world: CeleryWorld) -> None:
    former = world.executor()
    former.start(world.plan())
    with world.redis.client() as client:
        eventually(lambda: client.llen(world.settings.celery_queue))
    former.close()
    app = create_app(world.settings)
    for _ in range(20):
        app.send_task(RUN, args=["c", 0, 1, 0])
    app.close()
    heir = world.executor()
    heir.start(world.plan())
    _pair(world)
    first = world.wait_for_beat()
    world.wait_for_beat(unlike=lambda line: line.run != first.run)
    assert {line.run for line in world.lines()} == {first.run}


def test_a_worker_that_stood_still_past_its_lease_writes_nothing_when_it_wakes_up(world: CeleryWorld) -> None:
    workers = _pair(world)
    leader = world.executor()
    leader.start(world.plan())
    first = world.wait_for_beat()
    home = _home(workers, first)
    home.freeze()
    second = world.wait_for_beat(unlike=lambda line: line.run == first.run)
    before = time.monotonic()
    home.thaw()
    # It takes part again: with the other one gone, the task comes back.
    _home(workers, second).kill()
    third = world.wait_for_beat(unlike=lambda line: line.run in {first.run, second.run})
    assert _home(workers, third) is home
    assert not [line for line in world.lines() if line.run == first.run and line.at > before]


@pytest.mark.parametrize("is_group", [False, True])
def test_a_worker_that_shuts_down_hands_its_tasks_over(world: CeleryWorld, is_group: bool) -> None:
    workers = _pair(world)
    world.executor().start(world.plan())
    first = world.wait_for_beat()
    assert _home(workers, first).stop(is_group=is_group) == 0
    assert any(line.run == first.run and line.word == "end" for line in world.lines())
    world.wait_for_beat(unlike=lambda line: line.run == first.run)


def test_a_task_that_hangs_costs_its_process_and_not_its_worker(world: CeleryWorld) -> None:
    worker = world.worker("a", slots=1)
    leader = world.executor()
    leader.start(world.plan(line_hangs="/never"))
    first = world.wait_for_beat()
    leader.stop([TASK])
    assert not is_running(first.pid)
    leader.start(world.plan(generation=2))
    world.wait_for_beat(unlike=lambda line: line.run == first.run)
    assert worker.is_running
