"""Tasks on Celery workers: started, paused, stopped, replaced, taken over; and never run twice at once."""

from collections.abc import Iterator

import pytest

from connect.executors.celery.executor import CeleryExecutor
from connect.executors.celery.tasks import RUN, create_app
from connect.runtime.models import Target, TaskId
from tests.support.admin import eventually
from tests.support.celery_world import CeleryWorld
from tests.support.line_task import assert_never_twice, lines_of
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def world(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryWorld]:
    """Two workers for all tests of this file."""
    with CeleryWorld(redis_server, tmp_path_factory.mktemp("celery"), "shared", lease_ms=3000) as shared:
        shared.worker("a", slots=3)
        shared.worker("b", slots=3)
        yield shared
    assert_never_twice(shared.lines_file)


@pytest.fixture(scope="module")
def leader(world: CeleryWorld) -> CeleryExecutor:
    return world.executor()


@pytest.fixture(autouse=True)
def _tidy(leader: CeleryExecutor) -> Iterator[None]:
    yield
    leader.stop(leader.running_tasks())


def test_a_task_runs_until_it_is_stopped(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("simple"))
    world.wait_for_beat("simple-0")
    assert TaskId("simple", 0) in leader.running_tasks()
    leader.stop([TaskId("simple", 0)])
    assert world.lines("simple-0")[-1].word == "end"
    assert TaskId("simple", 0) not in leader.running_tasks()


def test_a_task_pauses_and_goes_on(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("pausing"))
    world.wait_for_beat("pausing-0")
    leader.set_target(TaskId("pausing", 0), Target.PAUSED)
    eventually(lambda: world.lines("pausing-0")[-1].word == "paused")
    leader.set_target(TaskId("pausing", 0), Target.STARTED)
    eventually(lambda: world.lines("pausing-0")[-1].word == "beat")
    assert len({line.run for line in world.lines("pausing-0")}) == 1


def test_counters_come_from_the_workers(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("counting"))
    told = eventually(leader.counters)
    assert told[TaskId("counting", 0)].source_record_poll > 0


def test_a_new_generation_takes_the_place_of_the_former_one(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("changing", generation=1))
    first = world.wait_for_beat("changing-0")
    leader.start(world.plan("changing", generation=2))
    second = world.wait_for_beat("changing-0", unlike=lambda line: line.run == first.run)
    assert second.epoch > first.epoch
    assert any(line.run == first.run and line.word == "end" for line in world.lines("changing-0"))


def test_a_task_that_ends_by_itself_is_not_started_again(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("failing", line_fails_after="3"))
    leader.start(world.plan("living"))
    eventually(lambda: any(line.word == "end" for line in world.lines("failing-0")))
    eventually(lambda: leader.running_tasks() == {TaskId("living", 0)})
    app = create_app(world.settings)
    for epoch in (0, world.lines("failing-0")[-1].epoch):
        app.send_task(RUN, args=["failing", 0, 1, epoch])
    _wait_until_taken(world)
    assert len({line.run for line in world.lines("failing-0")}) == 1
    app.close()


def test_a_failed_task_is_started_again_with_the_next_generation(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("again", line_fails_after="3"))
    eventually(lambda: any(line.word == "end" for line in world.lines("again-0")))
    leader.start(world.plan("again", generation=2))
    eventually(lambda: len({line.run for line in world.lines("again-0")}) == 2)


def test_a_storm_of_the_same_message_starts_the_task_once(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("storm"))
    first = world.wait_for_beat("storm-0")
    app = create_app(world.settings)
    for number in range(100):
        app.send_task(RUN, args=["storm", 0, 1, (0, first.epoch)[number % 2]])
    _wait_until_taken(world)
    world.wait_for_beat("storm-0", unlike=lambda line: line.run != first.run)
    assert {line.run for line in world.lines("storm-0")} == {first.run}
    app.close()


def test_a_new_leader_adopts_what_runs(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("adopted"))
    first = world.wait_for_beat("adopted-0")
    heir = world.executor()
    heir.start(world.plan("adopted"))
    eventually(lambda: heir.running_tasks() == {TaskId("adopted", 0)})
    eventually(lambda: leader.running_tasks() == set())
    world.wait_for_beat("adopted-0", unlike=lambda line: line.run != first.run)
    heir.stop([TaskId("adopted", 0)])
    assert {line.run for line in world.lines("adopted-0")} == {first.run}


def test_a_former_leader_stops_nothing_of_its_heir(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("inherited"))
    world.wait_for_beat("inherited-0")
    heir = world.executor()
    heir.start(world.plan("inherited", generation=2))
    leader.stop([TaskId("inherited", 0)])
    eventually(lambda: len({line.run for line in world.lines("inherited-0")}) == 2)
    last = world.wait_for_beat("inherited-0")
    world.wait_for_beat("inherited-0", unlike=lambda line: line.run != last.run)
    heir.stop([TaskId("inherited", 0)])
    assert len({line.run for line in world.lines("inherited-0")}) == 2


def test_a_new_leader_stops_what_is_not_wanted_any_more(world: CeleryWorld, leader: CeleryExecutor) -> None:
    leader.start(world.plan("orphan"))
    world.wait_for_beat("orphan-0")
    heir = world.executor(settle_s=0)
    heir.take_over()
    eventually(lambda: world.lines("orphan-0")[-1].word == "end")
    leader.start(world.plan("after"))
    world.wait_for_beat("after-0")


def test_more_tasks_than_slots_wait_until_there_is_room(world: CeleryWorld, leader: CeleryExecutor) -> None:
    for task in range(8):
        leader.start(world.plan("many", task))
    running = eventually(leader.running_tasks, lambda owned: len(owned) == 6)
    leader.stop(running)
    eventually(leader.running_tasks, lambda owned: len(owned) == 2)
    eventually(lambda: len({line.task for line in lines_of(world.lines_file) if line.task.startswith("many-")}) == 8)


def _wait_until_taken(world: CeleryWorld) -> None:
    """Messages of the queue have all been taken, and refused."""
    with world.redis.client() as client:
        eventually(lambda: client.llen(world.settings.celery_queue) == 0)
