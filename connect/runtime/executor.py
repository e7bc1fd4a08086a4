"""Where tasks run, as the leader sees it."""

from collections.abc import Callable, Collection
from typing import Protocol, runtime_checkable

from connect.runtime.counters import TaskCounters
from connect.runtime.models import Target, TaskId, TaskPlan


class Executor(Protocol):
    """Runs tasks somewhere. Safe for any number of threads; tasks write their states to the status topic themselves."""

    on_lost: Callable[[TaskId, str], None]
    """Set by the leader: a task's process died, which is not the task's fault; it is started again at once."""

    def start(self, plan: TaskPlan) -> None:
        """Run a task; if it runs already, that run is ended first."""

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause a task, or let it go on."""

    def stop(self, ids: Collection[TaskId]) -> None:
        """Return when none of these tasks runs any more: asked to end, and cancelled when their time is over."""

    def owned(self) -> set[TaskId]:
        """The tasks that run now."""

    def counters(self) -> dict[TaskId, TaskCounters]:
        """What each of them has done so far."""

    def close(self) -> None:
        """End all tasks, and leave nothing open."""


@runtime_checkable
class LastingExecutor(Executor, Protocol):
    """An executor whose tasks outlive the worker that leads, and are started again without it when they are lost."""

    def take_over(self) -> None:
        """Lead: what a former leader wanted and this one does not is stopped after a while."""
