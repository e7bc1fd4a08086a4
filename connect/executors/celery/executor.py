"""Runs tasks on Celery workers: the leader writes what it wants, and its reconciler sees to it that all of it runs."""

import logging
import time
from collections.abc import Callable, Collection
from typing import Final

from msgspec.structs import replace

from connect.api.errors import RetriableError
from connect.executors.celery.leases import Unreachable, touch
from connect.executors.celery.reconciler import Reconciler
from connect.executors.celery.wishes import Deposed, Seen, Wishes
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.runtime.stopping import CANCEL_GRACE_S
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_POLL_S: Final = 0.05
_SETTLE_S: Final = 10.0
"""How long a new leader may take to tell all that it wants; what it has not told by then is stopped."""


class CeleryExecutor:
    """The executor of the worker that leads: whoever started a task last. Other workers' wishes do not count."""

    def __init__(self, settings: ConnectSettings, *, settle_s: float = _SETTLE_S) -> None:
        self._settings = settings
        self._wishes = Wishes(settings)
        self._reconciler = Reconciler(settings, self._wishes, settle_s=settle_s, on_lost=self._has_lost)
        self._last_seen: list[Seen] = []
        self.on_lost: Callable[[TaskId, str], None] = _nobody_listens
        touch(settings)

    def take_over(self) -> None:
        """Lead, even if there is nothing to start: what a former leader wanted is stopped after a while."""
        self._reconciler.take_over()

    def start(self, plan: TaskPlan) -> None:
        """Run a task; a run of the same generation goes on, any other one of the task ends first."""
        self._reconciler.take_over()
        self._reconciler.want(plan)

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause a task, or let it go on."""
        plan = self._reconciler.wanted().get(task_id)
        if plan is not None and plan.target is not target:
            self._reconciler.want(replace(plan, target=target))

    def stop(self, ids: Collection[TaskId]) -> None:
        """Return when none of these tasks runs for this leader any more; RetriableError when that cannot be known."""
        self._reconciler.unwant(ids)
        deadline = time.monotonic() + self._longest_stop_s
        left = list(ids)
        while left:
            left = self._left_of(left)
            if left and time.monotonic() > deadline:
                names = ", ".join(map(str, left))
                raise RetriableError(f"nobody knows whether these tasks have stopped: {names}")
            if left:
                time.sleep(_POLL_S)

    def owned(self) -> set[TaskId]:
        """The tasks that somebody owns; those of the last answer when Redis does not answer."""
        return {seen.id for seen in self._seen() if seen.held_s}

    def counters(self) -> dict[TaskId, TaskCounters]:
        """What each of them has done so far, at most about a second old."""
        return {seen.id: seen.counters for seen in self._seen() if seen.held_s and seen.counters is not None}

    def close(self) -> None:
        """Stop looking after the tasks. What was not stopped goes on, and the next leader decides about it."""
        self._reconciler.close()
        self._wishes.close()

    @property
    def _longest_stop_s(self) -> float:
        """Asked, cancelled, killed, and its lease over; and time for Redis to come back."""
        graceful_s = self._settings.task_shutdown_graceful_timeout_ms / 1000
        return graceful_s + CANCEL_GRACE_S + 2 * self._settings.celery_lease_ms / 1000 + 10

    def _left_of(self, ids: list[TaskId]) -> list[TaskId]:
        """Those that still run after having been told to stop."""
        try:
            stamp = self._reconciler.stamp()
            self._wishes.set_targets(ids, Target.STOPPED, stamp=stamp)
            return self._wishes.forget(ids, stamp=stamp)
        except Deposed:
            return []  # they are another leader's by now
        except Unreachable as error:
            log.warning("tasks cannot be stopped yet", extra={"error": str(error)})
            return ids

    def _seen(self) -> list[Seen]:
        try:
            self._last_seen = self._wishes.survey(list(self._reconciler.wanted())).tasks
        except Unreachable as error:
            log.warning("Redis does not answer", extra={"error": str(error)})
        return self._last_seen

    def _has_lost(self, task_id: TaskId, reason: str) -> None:
        log.error("task lost", extra={"task": str(task_id), "reason": reason})
        self.on_lost(task_id, reason)


def _nobody_listens(task_id: TaskId, reason: str) -> None:
    """The reconciler itself sees to it that a lost task runs again; others only tell about it."""
