"""One run of a task under a lease, until the lease or the task ends, or the leader stops it."""

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


def boot_time() -> float:
    """Seconds of a clock that also runs while the machine is suspended, as leases do."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeasedRun:
    """Renews the lease and follows the leader's target state, until the task has ended."""

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
        """Whether the lease is valid; the task checks this before it writes."""
        return not self._is_lost and boot_time() < self._deadline

    def run(self, task: RunningTask) -> None:
        """Start the task; returns when it has ended and the lease is released."""
        task.start()
        while not task.join(min(self._lease_s / (5 if self._cancelled_at is None else 50), _LONGEST_PAUSE_S)):
            self._renew(task)
            self._steer(task)
        self._release(has_ended=not task.was_stopped)

    def _renew(self, task: RunningTask) -> None:
        """Renew the lease; it is lost if Redis does not answer before it ends."""
        asked_at = boot_time()
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
            log.warning("lease could not be renewed", extra={"task": str(self._plan.id), "error": str(error)})
            return
        self._is_lost = hold is Hold.LOST
        self._target = target
        if hold is Hold.HELD:
            self._deadline = asked_at + self._lease_s

    def _steer(self, task: RunningTask) -> None:
        if self._is_lost or self._deadline - boot_time() < self._lease_s / 3:
            self._cancel(task, "its lease has ended")
        elif self._is_draining() or self._target is Target.STOPPED:
            if self._stopped_at is None:
                self._stopped_at = boot_time()
                task.stop()
            elif boot_time() - self._stopped_at > self._graceful_s:
                self._cancel(task, "it does not stop in time")
        elif self._stopped_at is None:
            task.set_target(self._target)
        self._kill_if_hanging()

    def _cancel(self, task: RunningTask, reason: str) -> None:
        if self._cancelled_at is None:
            log.warning("task is cancelled", extra={"task": str(self._plan.id), "reason": reason})
            self._cancelled_at = boot_time()
            task.cancel()

    def _kill_if_hanging(self) -> None:
        """A thread cannot be killed alone, and must not continue when others may own its task: kill the process."""
        if self._cancelled_at is None:
            return
        now = boot_time()
        is_last_moment = not self._is_lost and self._deadline - now < self._lease_s / 20
        if is_last_moment or now - self._cancelled_at > (_LOST_GRACE_S if self._is_lost else CANCEL_GRACE_S):
            log.critical("task hangs in its connector; this process ends", extra={"task": str(self._plan.id)})
            os.kill(os.getpid(), signal.SIGKILL)

    def _release(self, *, has_ended: bool) -> None:
        """Release the lease; if Redis does not answer, it expires."""
        while boot_time() < self._deadline and not self._is_lost:
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
