"""Who owns which task, kept in Redis: leases with an end, and an epoch that grows with every owner.

A message that wakes a worker up may come late, twice or never without harm: only who gets the lease runs the task.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, cast

import msgspec
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from connect.api.errors import RetriableError
from connect.executors.celery import lease_scripts
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_SHORTEST_TIMEOUT_S: Final = 0.1


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """The lease is ours."""

    epoch: int
    target: Target
    plan: bytes


class Refused(StrEnum):
    """Why a lease is not given."""

    COOLING = "cooling"
    """Redis may have forgotten leases that are still in use."""
    STALE = "stale"
    """The task has had another owner since the message was sent."""
    HELD = "held"
    """Another worker owns it."""
    UNWANTED = "unwanted"
    """The leader wants another plan by now, or nothing."""
    ENDED = "ended"
    """This very plan has run and ended by itself."""


class Hold(StrEnum):
    """What has become of a lease."""

    HELD = "held"
    FORGOTTEN = "forgotten"
    """Redis knows nothing of the task: it can have no other owner before our lease would have ended."""
    LOST = "lost"
    """It ended, and another one may own the task by now."""


class Unreachable(RetriableError):
    """Redis does not answer, or not as it should."""


class TaskKeys:
    """The names of what a group of workers keeps in Redis; all in one slot of a Redis cluster."""

    def __init__(self, group: str) -> None:
        self._prefix = f"caudal-connect:{{{group}}}"
        self.guard = f"{self._prefix}:guard"
        self.events = f"{self._prefix}:events"
        self.tasks = f"{self._prefix}:tasks"
        self.leader = f"{self._prefix}:leader"

    def task(self, task_id: TaskId) -> str:
        """Where a task is kept."""
        return f"{self._prefix}:task:{redis_name(task_id)}"


class Leases:
    """The owner's side: claim, renew, release. Every call is one step in Redis."""

    def __init__(self, settings: ConnectSettings, *, timeout_s: float | None = None) -> None:
        self.lease_s = settings.celery_lease_ms / 1000
        self.keys = TaskKeys(settings.group_id)
        # A lease must not run out while an answer is waited for.
        self.redis = connect(settings, timeout_s=timeout_s or max(_SHORTEST_TIMEOUT_S, self.lease_s / 10))
        self.lease_us = settings.celery_lease_ms * 1000
        self._touch = self.redis.register_script(lease_scripts.TOUCH)
        self._claim = self.redis.register_script(lease_scripts.CLAIM)
        self._renew = self.redis.register_script(lease_scripts.RENEW)
        self._release = self.redis.register_script(lease_scripts.RELEASE)

    def touch(self) -> None:
        """Let the wait after a loss of memory begin, if it must."""
        with mapped_errors():
            self._touch(keys=[self.keys.guard], args=[self.lease_us])

    def claim(self, task_id: TaskId, *, generation: int, epoch: int, owner: str) -> Claimed | Refused:
        """Ask for a task as a message says: its generation, and the epoch of its former owner."""
        keys = [self.keys.guard, self.keys.task(task_id)]
        with mapped_errors():
            answer = cast("list[bytes]", self._claim(keys=keys, args=[self.lease_us, epoch, generation, owner]))
        if answer[0] != b"claimed":
            return Refused(answer[0].decode())
        return Claimed(epoch=int(answer[1]), target=Target(answer[2].decode()), plan=answer[3])

    def renew(
        self, task_id: TaskId, *, generation: int, epoch: int, owner: str, counters: bytes
    ) -> tuple[Hold, Target]:
        """Own the task for another while, and hear what the leader wants of it."""
        keys = [self.keys.guard, self.keys.task(task_id)]
        with mapped_errors():
            renewed = self._renew(keys=keys, args=(self.lease_us, epoch, generation, owner, counters))
            answer = cast("list[bytes]", renewed)
        hold = Hold(answer[0].decode())
        return hold, Target(answer[1].decode()) if hold is Hold.HELD else Target.STOPPED

    def release(self, task_id: TaskId, *, generation: int, epoch: int, owner: str, has_ended: bool) -> None:
        """Others may have the task; `has_ended`: it has ended by itself, and is not run again."""
        keys = [self.keys.guard, self.keys.task(task_id), self.keys.events]
        with mapped_errors():
            self._release(keys=keys, args=(epoch, generation, owner, int(has_ended), redis_name(task_id)))

    def close(self) -> None:
        """Close all connections."""
        self.redis.close()


def touch(settings: ConnectSettings) -> None:
    """Let the wait after a loss of memory begin when a process starts, not when the first task is wanted."""
    leases = Leases(settings)
    try:
        leases.touch()
    except Unreachable as error:
        log.warning("Redis does not answer yet", extra={"error": str(error)})
    finally:
        leases.close()


def connect(settings: ConnectSettings, *, timeout_s: float) -> "redis.Redis":
    """A client that tries once, and no longer than that."""
    return redis.Redis.from_url(
        settings.celery_broker_url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        client_name="caudal-connect",
    )


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Map the library's errors to Unreachable."""
    try:
        yield
    except redis.RedisError as error:
        raise Unreachable(f"Redis (celery.broker.url): {error}") from error


def redis_name(task_id: TaskId) -> str:
    """A task in one word; the number comes first because a connector's name may hold anything."""
    return f"{task_id.task}:{task_id.connector}"


def parse_redis_name(name: str) -> TaskId:
    """The task of that name."""
    number, _, connector = name.partition(":")
    return TaskId(connector, int(number))
