"""Leases in a real Redis: who gets one, who keeps it, and what a Redis that forgot everything gives away."""

from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
import pytest

from connect.executors.celery.desired_tasks import DesiredTasks
from connect.executors.celery.leases import Claimed, Hold, Leases, Refused, Unreachable
from connect.runtime.models import Target, TaskId, TaskPlan
from connect.settings import ConnectSettings
from connect.stores.config_writer import LeadershipLost
from tests.support.admin import eventually
from tests.support.redis_server import RedisServer, running_redis

TASK = TaskId("a:b", 3)


class World(SimpleNamespace):
    """The two sides of one group."""

    leases: Leases
    desired: DesiredTasks
    redis: RedisServer
    stamp: int

    def claim(self, *, epoch: int = 0, generation: int = 1, owner: str = "me") -> Claimed | Refused:
        """Ask for the task."""
        return self.leases.claim(TASK, generation=generation, epoch=epoch, owner=owner)

    def claimed(self, *, epoch: int = 0, owner: str = "me") -> Claimed:
        """Ask until it is given."""
        answer = eventually(lambda: self.claim(epoch=epoch, owner=owner), lambda answer: isinstance(answer, Claimed))
        assert isinstance(answer, Claimed)
        return answer

    def renew(self, epoch: int, *, owner: str = "me", generation: int = 1) -> tuple[Hold, Target]:
        """Keep the task."""
        return self.leases.renew(TASK, generation=generation, epoch=epoch, owner=owner, counters=b"")

    def release(self, epoch: int, *, owner: str = "me", has_ended: bool = False) -> None:
        """Give the task back."""
        self.leases.release(TASK, generation=1, epoch=epoch, owner=owner, has_ended=has_ended)


def _plan(generation: int = 1) -> TaskPlan:
    return TaskPlan(id=TASK, connector_config={"x": "é"}, task_config={}, target=Target.STARTED, generation=generation)


def _world(redis: RedisServer, group: str) -> World:
    settings = ConnectSettings(group_id=group, celery_broker_url=redis.url, celery_lease_ms=1000, celery_queue=group)
    # A lease of a second must not run out while an answer is waited for; here nothing does, on however slow a machine.
    world = World(leases=Leases(settings, timeout_s=20), desired=DesiredTasks(settings), redis=redis)
    world.stamp = world.desired.lead()
    world.desired.want(_plan(), stamp=world.stamp)
    return world


@pytest.fixture
def world(redis_server: RedisServer, name: str) -> Iterator[World]:
    world = _world(redis_server, name)
    yield world
    world.leases.close()
    world.desired.close()


@pytest.fixture
def own(name: str) -> Iterator[World]:
    """A world whose Redis may be maltreated."""
    with running_redis() as redis:
        world = _world(redis, name)
        yield world
        world.leases.close()
        world.desired.close()


def test_who_claims_gets_the_plan_the_target_and_an_epoch(world: World) -> None:
    claimed = world.claimed()
    assert msgspec.json.decode(claimed.plan, type=TaskPlan) == _plan()
    assert claimed.target is Target.STARTED
    assert claimed.epoch > 0


def test_nothing_is_given_away_while_a_new_redis_may_have_forgotten_owners(world: World) -> None:
    assert world.claim() is Refused.COOLING


def test_a_lease_that_is_held_is_not_given_to_another(world: World) -> None:
    epoch = world.claimed().epoch
    assert world.claim(epoch=epoch, owner="you") is Refused.HELD


def test_a_message_of_the_past_is_refused(world: World) -> None:
    first = world.claimed()
    world.release(first.epoch)
    assert world.claim(epoch=0) is Refused.STALE
    assert world.claimed(epoch=first.epoch).epoch > first.epoch


@pytest.mark.parametrize("generation", [0, 2])
def test_a_plan_that_is_not_wanted_is_refused(world: World, generation: int) -> None:
    world.release(epoch := world.claimed().epoch)
    assert world.claim(epoch=epoch, generation=generation) is Refused.UNWANTED


def test_a_stopped_task_is_refused(world: World) -> None:
    world.release(epoch := world.claimed().epoch)
    world.desired.set_targets([TASK], Target.STOPPED, stamp=world.stamp)
    assert world.claim(epoch=epoch) is Refused.UNWANTED


def test_a_plan_that_has_ended_by_itself_is_refused_and_the_next_one_is_not(world: World) -> None:
    world.release(epoch := world.claimed().epoch, has_ended=True)
    assert world.claim(epoch=epoch) is Refused.ENDED
    world.desired.want(_plan(generation=2), stamp=world.stamp)
    assert isinstance(world.claim(epoch=epoch, generation=2), Claimed)


def test_a_lease_that_is_not_renewed_ends(world: World) -> None:
    first = world.claimed()
    second = world.claimed(epoch=first.epoch, owner="you")
    assert second.epoch > first.epoch
    assert world.renew(first.epoch) == (Hold.LOST, Target.STOPPED)
    assert world.renew(second.epoch, owner="you")[0] is Hold.HELD


def test_a_lease_that_ended_is_not_renewed_even_if_nobody_took_it(world: World) -> None:
    epoch = world.claimed().epoch
    eventually(lambda: world.desired.survey([TASK]).tasks[0].held_s == 0)
    assert world.renew(epoch)[0] is Hold.LOST


def test_an_owner_hears_what_is_wanted_when_it_renews(world: World) -> None:
    epoch = world.claimed().epoch
    world.desired.set_targets([TASK], Target.PAUSED, stamp=world.stamp)
    assert world.renew(epoch) == (Hold.HELD, Target.PAUSED)
    world.desired.want(_plan(generation=2), stamp=world.stamp)
    assert world.renew(epoch) == (Hold.HELD, Target.STOPPED)


def test_nobody_gives_back_what_another_one_owns(world: World) -> None:
    epoch = world.claimed().epoch
    world.release(epoch, owner="you")
    world.release(epoch - 1)
    assert world.renew(epoch)[0] is Hold.HELD


def test_a_task_is_not_forgotten_while_it_is_owned(world: World) -> None:
    epoch = world.claimed().epoch
    assert world.desired.forget([TASK], stamp=world.stamp) == [TASK]
    world.release(epoch)
    assert world.desired.forget([TASK], stamp=world.stamp) == []
    assert world.desired.task_ids() == set()
    assert world.claim(epoch=epoch) is Refused.STALE


def test_a_leader_of_the_past_changes_nothing(world: World) -> None:
    heir = world.desired.lead()
    assert heir > world.stamp
    with pytest.raises(LeadershipLost):
        world.desired.want(_plan(generation=9), stamp=world.stamp)
    with pytest.raises(LeadershipLost):
        world.desired.set_targets([TASK], Target.STOPPED, stamp=world.stamp)
    with pytest.raises(LeadershipLost):
        world.desired.forget([TASK], stamp=world.stamp)
    (seen,) = world.desired.survey([TASK]).tasks
    assert (seen.wanted, seen.target) == (1, Target.STARTED)


def test_the_last_leader_leads_on_when_everything_was_forgotten(own: World) -> None:
    heir = own.desired.lead()
    with own.redis.client() as client:
        client.flushall()
    own.desired.want(_plan(), stamp=own.stamp)
    own.desired.want(_plan(generation=2), stamp=heir)
    with pytest.raises(LeadershipLost):
        own.desired.want(_plan(), stamp=own.stamp)


def test_epochs_grow_even_when_everything_was_forgotten(own: World) -> None:
    first = own.claimed()
    with own.redis.client() as client:
        client.flushall()
    assert own.renew(first.epoch)[0] is Hold.FORGOTTEN
    own.desired.want(_plan(), stamp=own.stamp)
    assert own.claim() is Refused.COOLING
    assert own.claimed().epoch > first.epoch


def test_a_redis_that_was_started_again_gives_nothing_away_for_one_lease(name: str) -> None:
    with running_redis(is_durable=True) as redis:
        world = _world(redis, name)
        first = world.claimed()
        world.release(first.epoch)
        redis.kill()
        redis.start()
        assert eventually(lambda: _asked(world, first.epoch)) is Refused.COOLING
        assert world.claimed(epoch=first.epoch).epoch > first.epoch
        world.leases.close()
        world.desired.close()


def _asked(world: World, epoch: int) -> Claimed | Refused | None:
    """The answer, once the connection that died has been replaced."""
    try:
        return world.claim(epoch=epoch)
    except Unreachable:
        return None


def test_an_unreachable_redis_is_told_without_its_password() -> None:
    leases = Leases(ConnectSettings(celery_broker_url="redis://user:secret@127.0.0.1:1/0", celery_lease_ms=1000))
    with pytest.raises(Unreachable, match="Redis") as told:
        leases.touch()
    assert "secret" not in str(told.value)
    leases.close()
