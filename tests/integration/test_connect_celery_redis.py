"""A Redis that dies, forgets or stands still under Celery workers: tasks go on and never run twice at once."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.executors.celery.tasks import create_app
from connect.runtime.models import TaskId
from tests.support.admin import eventually
from tests.support.celery_world import LEASE_MS, CeleryWorld, shown_logs
from tests.support.line_task import assert_never_twice, is_running
from tests.support.patience import PATIENCE_S
from tests.support.redis_server import running_redis

TASK = TaskId("c", 0)


@pytest.fixture
def world(tmp_path: Path, name: str) -> Iterator[CeleryWorld]:
    """Two workers and a Redis of its own, since that is maltreated."""
    with running_redis() as redis, CeleryWorld(redis, tmp_path, name) as own:
        for worker in ("a", "b"):
            own.worker(worker, slots=1)
        yield own
    assert_never_twice(own.lines_file)


def test_tasks_go_on_after_redis_was_killed_and_came_back_empty(world: CeleryWorld) -> None:
    leader = world.executor()
    leader.start(world.plan())
    leader.start(world.plan("c", 1))
    first = world.wait_for_beat()
    world.redis.kill()
    world.redis.start()
    with shown_logs(world):
        world.wait_for_beat(unlike=lambda line: line.run == first.run)
        eventually(leader.running_tasks, lambda found: found == {TASK, TaskId("c", 1)})


def test_a_message_that_is_acknowledged_while_redis_is_away_does_not_block_the_next(tmp_path: Path, name: str) -> None:
    with (
        running_redis() as redis,
        CeleryWorld(redis, tmp_path, name) as world,
        create_app(world.settings).connection() as connection,
        connection.SimpleQueue(name) as queue,
    ):
        queue.channel.basic_qos(0, 1, False)
        queue.put("wake up")
        message = queue.get(timeout=PATIENCE_S)
        assert not queue.channel.qos.can_consume()
        redis.kill()
        message.ack()
        assert queue.channel.qos.can_consume()
        redis.start()


def test_tasks_stop_when_redis_stays_away_and_go_on_when_it_is_back(world: CeleryWorld) -> None:
    leader = world.executor()
    leader.start(world.plan())
    first = world.wait_for_beat()
    world.redis.kill()
    killed_at = time.monotonic()
    lease_s = LEASE_MS / 1000
    eventually(lambda: time.monotonic() - world.lines()[-1].at > lease_s)
    assert world.lines()[-1].at < killed_at + lease_s
    world.redis.start()
    world.wait_for_beat(unlike=lambda line: line.run == first.run)


def test_a_leader_that_begins_while_redis_is_away_starts_its_tasks_when_it_is_back(world: CeleryWorld) -> None:
    former = world.executor()
    former.start(world.plan(generation=1))
    first = world.wait_for_beat()
    former.close()
    world.redis.freeze()
    leader = world.executor()
    leader.start(world.plan(generation=2))
    world.redis.thaw()
    world.wait_for_beat(unlike=lambda line: line.run == first.run)
    leader.stop([TASK])
    assert world.lines()[-1].word == "end"


def test_a_task_that_hangs_when_its_lease_ends_loses_its_process(world: CeleryWorld) -> None:
    world.executor().start(world.plan(line_hangs="/never"))
    first = world.wait_for_beat()
    world.redis.kill()
    eventually(lambda: not is_running(first.pid))
    world.redis.start()
    world.wait_for_beat(unlike=lambda line: line.run == first.run)


def test_tasks_stop_when_redis_stands_still_and_go_on_when_it_moves(world: CeleryWorld) -> None:
    leader = world.executor()
    leader.start(world.plan())
    world.wait_for_beat()
    world.redis.freeze()
    eventually(lambda: time.monotonic() - world.lines()[-1].at > LEASE_MS / 1000)
    world.redis.thaw()
    world.wait_for_beat()


def test_a_redis_that_was_emptied_never_leads_to_two_owners(world: CeleryWorld) -> None:
    world.executor().start(world.plan())
    first = world.wait_for_beat()
    with world.redis.client() as client:
        client.flushall()
    second = world.wait_for_beat(unlike=lambda line: line.run == first.run)
    assert second.epoch > first.epoch


def test_stop_waits_for_owners_that_redis_has_forgotten(world: CeleryWorld) -> None:
    leader = world.executor()
    leader.start(world.plan())
    first = world.wait_for_beat()
    with world.redis.client() as client:
        client.flushall()
    leader.stop([TASK])
    stopped_at = time.monotonic()
    assert max(line.at for line in world.lines()) < stopped_at
    leader.start(world.plan(generation=2))
    world.wait_for_beat(unlike=lambda line: line.run == first.run)
    assert not [line for line in world.lines() if line.run == first.run and line.at > stopped_at]
