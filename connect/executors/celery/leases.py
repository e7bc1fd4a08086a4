"""The owners of tasks, kept in Redis: leases that expire, and an epoch that grows with every owner.

A message that wakes up a worker may come late, twice or never without harm: only the owner of the lease runs the task.
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
    """The lease was granted."""

    epoch: int
    target: Target
    plan: bytes


class Refused(StrEnum):
    """Why a lease is not granted."""

    COOLING = "cooling"
    """Redis may have forgotten leases that are still in use."""
    STALE = "stale"
    """The task has had another owner since the message was sent."""
    HELD = "held"
    """Another worker owns it."""
    UNWANTED = "unwanted"
    """The leader wants another plan by now, or none."""
    ENDED = "ended"
    """This plan has run and ended on its own."""


class Hold(StrEnum):
    """The state of a lease."""

    HELD = "held"
    FORGOTTEN = "forgotten"
    """Redis has lost the task: it has no other owner before our lease would have ended."""
    LOST = "lost"
    """It ended, and the task may have another owner by now."""


class Unreachable(RetriableError):
    """Redis does not answer, or with an error."""


class TaskKeys:
    """The keys of a group of workers in Redis; all in one slot of a Redis cluster."""

    def __init__(self, group: str) -> None:
        self._prefix = f"caudal-connect:{{{group}}}"
        self.guard = f"{self._prefix}:guard"
        self.events = f"{self._prefix}:events"
        self.tasks = f"{self._prefix}:tasks"
        self.leader = f"{self._prefix}:leader"

    def task(self, task_id: TaskId) -> str:
        """The key of a task."""
        return f"{self._prefix}:task:{redis_name(task_id)}"


class Leases:
    """The owner's view of Redis: claim, renew, release. Every call is atomic."""

    def __init__(self, settings: ConnectSettings, *, timeout_s: float | None = None) -> None:
        self.lease_s = settings.celery_lease_ms / 1000
        self.keys = TaskKeys(settings.group_id)
        # A lease must not expire while a call waits for its answer.
        self.redis = connect(settings, timeout_s=timeout_s or max(_SHORTEST_TIMEOUT_S, self.lease_s / 10))
        self.lease_us = settings.celery_lease_ms * 1000
        self._touch = self.redis.register_script(lease_scripts.TOUCH)
        self._claim = self.redis.register_script(lease_scripts.CLAIM)
        self._renew = self.redis.register_script(lease_scripts.RENEW)
        self._release = self.redis.register_script(lease_scripts.RELEASE)

    def touch(self) -> None:
        """Start the waiting time if Redis has lost its data."""
        with mapped_errors():
            self._touch(keys=[self.keys.guard], args=[self.lease_us])

    def claim(self, task_id: TaskId, *, generation: int, epoch: int, owner: str) -> Claimed | Refused:
        """Claim a task with the generation and the epoch of its former owner from a message."""
        keys = [self.keys.guard, self.keys.task(task_id)]
        with mapped_errors():
            answer = cast("list[bytes]", self._claim(keys=keys, args=[self.lease_us, epoch, generation, owner]))
        if answer[0] != b"claimed":
            return Refused(answer[0].decode())
        return Claimed(epoch=int(answer[1]), target=Target(answer[2].decode()), plan=answer[3])

    def renew(
        self, task_id: TaskId, *, generation: int, epoch: int, owner: str, counters: bytes
    ) -> tuple[Hold, Target]:
        """Renew the lease; returns its state and the task's target state."""
        keys = [self.keys.guard, self.keys.task(task_id)]
        with mapped_errors():
            renewed = self._renew(keys=keys, args=(self.lease_us, epoch, generation, owner, counters))
            answer = cast("list[bytes]", renewed)
        hold = Hold(answer[0].decode())
        return hold, Target(answer[1].decode()) if hold is Hold.HELD else Target.STOPPED

    def release(self, task_id: TaskId, *, generation: int, epoch: int, owner: str, has_ended: bool) -> None:
        """Release the task; `has_ended`: it has ended on its own, and is not run again."""
        keys = [self.keys.guard, self.keys.task(task_id), self.keys.events]
        with mapped_errors():
            self._release(keys=keys, args=(epoch, generation, owner, int(has_ended), redis_name(task_id)))

    def close(self) -> None:
        """Close all connections."""
        self.redis.close()


def touch(settings: ConnectSettings) -> None:
    """Start the waiting time, if Redis has lost its data, when a process starts, not with its first task."""
    leases = Leases(settings)
    try:
        leases.touch()
    except Unreachable as error:
        log.warning("Redis does not answer yet", extra={"error": str(error)})
    finally:
        leases.close()


def connect(settings: ConnectSettings, *, timeout_s: float) -> "redis.Redis":
    """A client with a timeout and without retries."""
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
    """The name of a task; the number comes first because a connector's name may contain anything."""
    return f"{task_id.task}:{task_id.connector}"


def parse_redis_name(name: str) -> TaskId:
    """The task of that name."""
    number, _, connector = name.partition(":")
    return TaskId(connector, int(number))
