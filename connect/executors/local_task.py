"""A task in this process, from the moment it is wanted until its thread has ended."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from connect.executors.task_factory import Task
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.stores.states import Target

log = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0
_JOIN_S: Final = 3600.0


class LocalTask:
    """Makes the task, again and again while its world does not open, starts it and waits for its end."""

    def __init__(
        self,
        plan: TaskPlan,
        make: Callable[[TaskPlan], Task],
        *,
        is_owner: Callable[[], bool] | None = None,
        on_end: Callable[["LocalTask"], None] | None = None,
    ) -> None:
        self.plan = plan
        self._make = make
        self._is_owner = is_owner
        self._on_end = on_end
        self._lock = threading.Lock()
        self._task: Task | None = None
        self._target = plan.target
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"life-of-{plan.id}", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is about to."""
        return self._thread.is_alive()

    @property
    def was_stopped(self) -> bool:
        """Whether it was asked to end; otherwise it has ended by itself."""
        return self._stopped.is_set()

    @property
    def counters(self) -> TaskCounters | None:
        """What the task has done so far; None before it begins."""
        task = self._task
        return None if task is None else task.counters

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def set_target(self, target: Target) -> None:
        """Pause or go on, now or when it has begun."""
        with self._lock:
            self._target = target
            if self._task is not None:
                self._task.set_target(target)

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self._stopped.set()
        with self._lock:
            if self._task is not None:
                self._task.stop()

    def cancel(self) -> None:
        """Time is over, or another one owns the task: it must write nothing more."""
        self._stopped.set()
        with self._lock:
            if self._task is not None:
                self._task.cancel()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for its end; True when it has come."""
        self._thread.join(max(0.0, timeout_seconds))
        return not self._thread.is_alive()

    def kill(self) -> bool:
        """A thread cannot be ended from outside."""
        return False

    def _run(self) -> None:
        try:
            task = self._begin()
            while task is not None and not task.join(_JOIN_S):
                pass
        finally:
            if self._on_end is not None:
                self._on_end(self)

    def _begin(self) -> Task | None:
        pause = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            try:
                task = self._make(self.plan)
            except Exception:
                log.exception("task cannot begin yet", extra={"task": str(self.plan.id), "again_in_s": pause})
                self._stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                return self._begun(task)
        return None

    def _begun(self, task: Task) -> Task | None:
        """Start the task, unless it is no longer wanted."""
        with self._lock:
            if self._stopped.is_set():
                return None
            if self._is_owner is not None:
                task.is_owner = self._is_owner
            if self._target != self.plan.target:
                task.set_target(self._target)
            self._task = task
            task.start()
        return task
