"""The interface between the leader and the places where tasks run."""

from collections.abc import Callable, Collection
from typing import Protocol, runtime_checkable

from connect.runtime.counters import TaskCounters
from connect.runtime.models import Target, TaskId, TaskPlan


class Executor(Protocol):
    """Runs tasks. Thread-safe; tasks write their states to the status topic themselves."""

    on_lost: Callable[[TaskId, str], None]
    """Set by the leader; called when a task's process died, so that the task is restarted."""

    def start(self, plan: TaskPlan) -> None:
        """Run a task; if it runs already, that run is stopped first."""

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause or resume a task."""

    def stop(self, ids: Collection[TaskId]) -> None:
        """Stop these tasks, and cancel those that take too long; returns when none of them runs."""

    def running_tasks(self) -> set[TaskId]:
        """The tasks that run now."""

    def counters(self) -> dict[TaskId, TaskCounters]:
        """The counters of each of them."""

    def close(self) -> None:
        """Stop all tasks and release everything."""


@runtime_checkable
class LastingExecutor(Executor, Protocol):
    """An executor whose tasks outlive the leader, and that restarts lost tasks by itself."""

    def take_over(self) -> None:
        """Become the leader: tasks of an earlier leader that this one does not want are stopped after a while."""
