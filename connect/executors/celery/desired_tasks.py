"""The leader's view of Redis: the tasks that it wants to run, and their state."""

from collections.abc import Collection, Sequence
from typing import Final, cast

import msgspec

from connect.executors.celery import lease_scripts
from connect.executors.celery.leases import Leases, mapped_errors, parse_redis_name, redis_name
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.config_writer import LeadershipLost
from connect.stores.states import Target, TaskId

_TIMEOUT_S: Final = 3.0
_SEEN: Final = ("epoch", "owner", "until", "ended", "wanted", "target", "counters")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A task as Redis has it."""

    id: TaskId
    epoch: int = 0
    owner: str = ""
    held_s: float = 0.0
    """How long its owner still has it; 0 when it has no owner."""
    ended: int = -1
    """The generation that has ended on its own."""
    wanted: int = -1
    """The generation of the plan in Redis."""
    target: Target = Target.STOPPED
    counters: TaskCounters | None = None


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks at one moment."""

    tasks: list[Seen]
    cooling_s: float
    """How long Redis grants no lease, because it may have forgotten some."""
    leader: int
    """The stamp of the leader; 0 when Redis has forgotten it."""
    waiting: int
    """The number of messages that wait for a Celery worker."""


class DesiredTasks:
    """Writes and reads tasks for a leader, which its `stamp` identifies; an earlier one gets LeadershipLost."""

    def __init__(self, settings: ConnectSettings) -> None:
        self._leases = Leases(settings, timeout_s=_TIMEOUT_S)
        self._keys = self._leases.keys
        self._redis = self._leases.redis
        self._queue = settings.celery_queue
        self._lead = self._redis.register_script(lease_scripts.LEAD)
        self._want = self._redis.register_script(lease_scripts.WANT)
        self._set_target = self._redis.register_script(lease_scripts.SET_TARGET)
        self._forget = self._redis.register_script(lease_scripts.FORGET)

    def lead(self) -> int:
        """Become the leader; returns the stamp."""
        with mapped_errors():
            return int(cast("bytes", self._lead(keys=[self._keys.guard, self._keys.leader])))

    def want(self, plan: TaskPlan, *, stamp: int) -> None:
        """Run this plan of the task, and no other."""
        text = msgspec.json.encode(plan)
        arguments = (stamp, redis_name(plan.id), text, plan.generation, plan.target.value)
        with mapped_errors():
            _require_lead([self._want(keys=self._keys_of(plan.id), args=arguments)])

    def set_targets(self, ids: Collection[TaskId], target: Target, *, stamp: int) -> None:
        """Set the target state of tasks."""
        with mapped_errors(), self._redis.pipeline(transaction=False) as pipeline:
            for task_id in ids:
                arguments = (stamp, redis_name(task_id), target.value)
                self._set_target(keys=self._keys_of(task_id), args=arguments, client=pipeline)
            _require_lead(pipeline.execute())

    def forget(self, ids: Collection[TaskId], *, stamp: int) -> list[TaskId]:
        """Remove tasks without an owner; returns those that have one."""
        with mapped_errors(), self._redis.pipeline(transaction=False) as pipeline:
            for task_id in ids:
                arguments = (stamp, redis_name(task_id), self._leases.lease_us)
                self._forget(keys=self._keys_of(task_id), args=arguments, client=pipeline)
            answers = _require_lead(pipeline.execute())
        return [task_id for task_id, answer in zip(ids, answers, strict=True) if answer == b"held"]

    def _keys_of(self, task_id: TaskId) -> list[str]:
        return [self._keys.guard, self._keys.leader, self._keys.tasks, self._keys.task(task_id)]

    def task_ids(self) -> set[TaskId]:
        """All tasks in Redis."""
        with mapped_errors():
            names = cast("set[bytes]", self._redis.smembers(self._keys.tasks))
        return {parse_redis_name(name.decode()) for name in names}

    def survey(self, ids: Sequence[TaskId]) -> Survey:
        """The state of these tasks."""
        self._leases.touch()
        with mapped_errors(), self._redis.pipeline(transaction=False) as pipeline:
            pipeline.time()
            pipeline.hget(self._keys.guard, "until")
            pipeline.get(self._keys.leader)
            pipeline.llen(self._queue)
            for task_id in ids:
                pipeline.hmget(self._keys.task(task_id), _SEEN)
            (seconds, microseconds), until, leader, waiting, *rows = pipeline.execute()
        now = seconds * 1_000_000 + microseconds
        return Survey(
            tasks=[_parse_task(task_id, row, now) for task_id, row in zip(ids, rows, strict=True)],
            cooling_s=_seconds_until(until, now),
            leader=int(leader or 0),
            waiting=waiting,
        )

    def poke(self) -> None:
        """End a `wait_for_news`."""
        with mapped_errors():
            self._redis.lpush(self._keys.events, "poke")

    def wait_for_news(self, seconds: float) -> None:
        """Return when a task was released, on a poke, or on a timeout."""
        with mapped_errors():
            if self._redis.blpop([self._keys.events], timeout=max(0.01, min(seconds, _TIMEOUT_S / 3))):
                self._redis.delete(self._keys.events)

    def close(self) -> None:
        """Close all connections."""
        self._leases.close()


def _require_lead(answers: Sequence[object]) -> Sequence[object]:
    if b"replaced" in answers:
        raise LeadershipLost("Another worker has taken over")
    return answers


def _parse_task(task_id: TaskId, row: list[bytes | None], now: int) -> Seen:
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
