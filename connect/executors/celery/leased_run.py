"""One run of a task under a lease: it goes on for as long as the lease does and the leader wants it."""

import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Final

import msgspec

from connect.executors.celery.leases import Hold, Leases, Unreachable
from connect.runtime.models import TaskPlan
from connect.runtime.stopping import CANCEL_GRACE_S
from connect.runtime.tasks.running_task import RunningTask
from connect.stores.states import Target

log = logging.getLogger(__name__)

_LONGEST_PAUSE_S: Final = 1.0
_LOST_GRACE_S: Final = 0.5


def elapsed() -> float:
    """Seconds on a clock that also counts while the machine sleeps: a lease goes on meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeasedRun:
    """Renews the lease and does what the leader wants, until the task has ended."""

    def __init__(
        self,
        leases: Leases,
        plan: TaskPlan,
        *,
        owner: str,
        claimed_at: float,
        graceful_s: float,
        is_draining: Callable[[], bool],
    ) -> None:
        self._leases = leases
        self._plan = plan
        self._owner = owner
        self._lease_s = leases.lease_s
        self._deadline = claimed_at + leases.lease_s
        self._graceful_s = graceful_s
        self._is_draining = is_draining
        self._target = plan.target
        self._is_lost = False
        self._stopped_at: float | None = None
        self._cancelled_at: float | None = None

    def is_owner(self) -> bool:
        """Whether the lease lasts; asked by the task before it writes."""
        return not self._is_lost and elapsed() < self._deadline

    def run(self, task: RunningTask) -> None:
        """Start the task, return when it has ended and the lease is given back."""
        task.start()
        while not task.join(self._pause_s):
            self._renew(task)
            self._steer(task)
        self._release(has_ended=not task.was_stopped)

    @property
    def _pause_s(self) -> float:
        return min(self._lease_s / (5 if self._cancelled_at is None else 50), _LONGEST_PAUSE_S)

    def _renew(self, task: RunningTask) -> None:
        """Ask for more time; what is not answered before the lease ends counts as lost."""
        asked_at = elapsed()
        if self._is_lost or asked_at >= self._deadline:
            self._is_lost = True
            return
        try:
            hold, target = self._leases.renew(
                self._plan.id,
                generation=self._plan.generation,
                epoch=self._plan.epoch,
                owner=self._owner,
                counters=msgspec.json.encode(task.counters),
            )
        except Unreachable as error:
            log.warning("lease is not renewed", extra={"task": str(self._plan.id), "error": str(error)})
            return
        self._is_lost = hold is Hold.LOST
        self._target = target
        if hold is Hold.HELD:
            self._deadline = asked_at + self._lease_s

    def _steer(self, task: RunningTask) -> None:
        if self._is_lost or self._deadline - elapsed() < self._lease_s / 3:
            self._cancel(task, "its lease is over")
        elif self._is_draining() or self._target is Target.STOPPED:
            self._stop(task)
        elif self._stopped_at is None:
            task.set_target(self._target)
        self._end_what_hangs()

    def _stop(self, task: RunningTask) -> None:
        if self._stopped_at is None:
            self._stopped_at = elapsed()
            task.stop()
        elif elapsed() - self._stopped_at > self._graceful_s:
            self._cancel(task, "it does not stop in time")

    def _cancel(self, task: RunningTask, reason: str) -> None:
        if self._cancelled_at is None:
            log.warning("task is cancelled", extra={"task": str(self._plan.id), "reason": reason})
            self._cancelled_at = elapsed()
            task.cancel()

    def _end_what_hangs(self) -> None:
        """A thread cannot be ended alone, and must not go on when others may own its task: the process ends."""
        if self._cancelled_at is None:
            return
        now = elapsed()
        is_last_moment = not self._is_lost and self._deadline - now < self._lease_s / 20
        if is_last_moment or now - self._cancelled_at > (_LOST_GRACE_S if self._is_lost else CANCEL_GRACE_S):
            log.critical("task hangs in its connector; this process ends", extra={"task": str(self._plan.id)})
            os.kill(os.getpid(), signal.SIGKILL)

    def _release(self, *, has_ended: bool) -> None:
        """Give the lease back; if Redis does not answer, it ends by itself."""
        while elapsed() < self._deadline and not self._is_lost:
            try:
                self._leases.release(
                    self._plan.id,
                    generation=self._plan.generation,
                    epoch=self._plan.epoch,
                    owner=self._owner,
                    has_ended=has_ended,
                )
            except Unreachable:
                time.sleep(self._lease_s / 20)
            else:
                return
