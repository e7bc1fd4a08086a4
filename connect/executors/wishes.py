"""The leader's side of what is kept in Redis: which tasks it wants, and what has become of them."""

from collections.abc import Collection, Sequence
from typing import Final, cast

import msgspec

from connect.executors import lease_scripts
from connect.executors.leases import Leases, name_of, task_named, told_as_unreachable
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

_TIMEOUT_S: Final = 3.0
_SEEN: Final = ("epoch", "owner", "until", "ended", "wanted", "target", "counters")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A task as Redis knows it."""

    id: TaskId
    epoch: int = 0
    owner: str = ""
    held_s: float = 0.0
    """How long its owner has it for sure; 0 when nobody has it."""
    ended: int = -1
    """The generation that has ended by itself."""
    wanted: int = -1
    """The generation of the plan that is written."""
    target: Target = Target.STOPPED
    counters: TaskCounters | None = None


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks that were asked for, at one moment."""

    tasks: list[Seen]
    cooling_s: float
    """How long no lease is given, because Redis may have forgotten some."""
    leader: str
    waiting: int
    """How many messages wait for a Celery worker."""


class Wishes:
    """What the leader writes and sees."""

    def __init__(self, settings: ConnectSettings) -> None:
        self._leases = Leases(settings, timeout_s=_TIMEOUT_S)
        self._keys = self._leases.keys
        self._redis = self._leases.redis
        self._queue = settings.celery_queue
        self._forget = self._redis.register_script(lease_scripts.FORGET)

    def lead(self, token: str, *, is_forced: bool) -> None:
        """Say who leads: from now on, or only if nobody does."""
        with told_as_unreachable():
            self._redis.set(self._keys.leader, token, nx=not is_forced)

    def want(self, plan: TaskPlan) -> None:
        """This plan, and no other one of the task, shall run."""
        with told_as_unreachable(), self._redis.pipeline() as pipeline:
            fields = ("plan", msgspec.json.encode(plan), "wanted", plan.generation, "target", plan.target.value)
            pipeline.hset(self._keys.task(plan.id), items=fields)
            pipeline.sadd(self._keys.tasks, name_of(plan.id))
            pipeline.execute()

    def set_targets(self, ids: Collection[TaskId], target: Target) -> None:
        """Pause tasks, let them go on, or stop them."""
        with told_as_unreachable(), self._redis.pipeline() as pipeline:
            for task_id in ids:
                pipeline.hset(self._keys.task(task_id), "target", target.value)
            pipeline.execute()

    def forget(self, task_id: TaskId) -> bool:
        """Keep nothing of a task that nobody owns; False when somebody does."""
        keys = [self._keys.guard, self._keys.task(task_id), self._keys.tasks]
        with told_as_unreachable():
            return bool(self._forget(keys=keys, args=[self._leases.lease_us, name_of(task_id)]))

    def known(self) -> set[TaskId]:
        """All tasks that Redis knows."""
        with told_as_unreachable():
            names = cast("set[bytes]", self._redis.smembers(self._keys.tasks))
        return {task_named(name.decode()) for name in names}

    def survey(self, ids: Sequence[TaskId]) -> Survey:
        """How these tasks fare."""
        self._leases.touch()
        with told_as_unreachable(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.time()
            pipeline.hget(self._keys.guard, "until")
            pipeline.get(self._keys.leader)
            pipeline.llen(self._queue)
            for task_id in ids:
                pipeline.hmget(self._keys.task(task_id), _SEEN)
            (seconds, microseconds), until, leader, waiting, *rows = pipeline.execute()
        now = seconds * 1_000_000 + microseconds
        return Survey(
            tasks=[_seen(task_id, row, now) for task_id, row in zip(ids, rows, strict=True)],
            cooling_s=_seconds_until(until, now),
            leader=(leader or b"").decode(),
            waiting=waiting,
        )

    def poke(self) -> None:
        """Wake up whoever waits for news."""
        with told_as_unreachable():
            self._redis.lpush(self._keys.events, "poke")

    def wait_for_news(self, seconds: float) -> None:
        """Return when a task was released or somebody poked, or time is over."""
        with told_as_unreachable():
            if self._redis.blpop([self._keys.events], timeout=max(0.01, min(seconds, _TIMEOUT_S / 3))):
                self._redis.delete(self._keys.events)

    def close(self) -> None:
        """Close all connections."""
        self._leases.close()


def _seen(task_id: TaskId, row: list[bytes | None], now: int) -> Seen:
    epoch, owner, until, ended, wanted, target, counters = row
    return Seen(
        id=task_id,
        epoch=int(epoch or 0),
        owner=(owner or b"").decode(),
        held_s=_seconds_until(until, now),
        ended=int(ended or -1),
        wanted=int(wanted or -1),
        target=Target((target or b"STOPPED").decode()),
        counters=None if counters is None else msgspec.json.decode(counters, type=TaskCounters),
    )


def _seconds_until(until: bytes | None, now: int) -> float:
    return max(0.0, (int(until or 0) - now) / 1e6)
