"""How tasks are ended: asked, then cancelled, then, where that is possible, killed."""

import logging
import time
from collections.abc import Collection
from typing import Final, Protocol

from connect.runtime.models import TaskPlan

log = logging.getLogger(__name__)

CANCEL_GRACE_S: Final = 3.0
"""How long a cancelled task may need to leave what it is in; after that it hangs in code of somebody else."""


class Stoppable(Protocol):
    """A task, wherever it runs."""

    @property
    def plan(self) -> TaskPlan:
        """What it does."""

    def stop(self) -> None:
        """Ask it to end; returns at once."""

    def cancel(self) -> None:
        """It must write nothing more."""

    def join(self, timeout_seconds: float) -> bool:
        """Wait for its end; True when it has come."""

    def kill(self) -> bool:
        """End its process; False where it has none of its own."""


def stop_all(tasks: Collection[Stoppable], *, graceful_s: float) -> None:
    """Return when none of them runs any more; what hangs and cannot be killed is left to itself, cancelled."""
    for task in tasks:
        task.stop()
    late = _still_alive(tasks, graceful_s)
    for task in late:
        log.warning("task does not stop in time and is cancelled", extra={"task": str(task.plan.id)})
        task.cancel()
    for task in _still_alive(late, CANCEL_GRACE_S):
        was_killed = task.kill()
        log.error("task hangs in its connector", extra={"task": str(task.plan.id), "process_killed": was_killed})
        task.join(CANCEL_GRACE_S if was_killed else 0)


def _still_alive(tasks: Collection[Stoppable], seconds: float) -> list[Stoppable]:
    deadline = time.monotonic() + seconds
    return [task for task in tasks if not task.join(deadline - time.monotonic())]
