"""Makes the tasks of one process; they share one world, which is opened when the first of them is made."""

import importlib
import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol, cast

from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import Target

log = logging.getLogger(__name__)

RUNNING_TASK: Final = "connect.runtime.tasks.running_task:RunningTask"
OPEN_WORLD: Final = "connect.runtime.tasks.world:open_world"


class Task(Protocol):
    """A task that runs in a thread of its own: connect.runtime.tasks.running_task.RunningTask."""

    is_owner: Callable[[], bool]
    """Whether the task may still write. Asked before anything is sent or committed: it tells at once when a process
    that stood still wakes up after another one has taken the task."""

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""

    @property
    def counters(self) -> TaskCounters:
        """What the task has done so far."""

    def start(self) -> None:
        """Begin."""

    def set_target(self, target: Target) -> None:
        """Pause or go on."""

    def stop(self) -> None:
        """Ask it to end."""

    def cancel(self) -> None:
        """It must write nothing more."""

    def join(self, timeout_seconds: float) -> bool:
        """Wait for its end; True when it has come."""


class World(Protocol):
    """What the tasks of one process share."""

    def close(self) -> None:
        """Leave nothing open."""


class TaskFactory:
    """Makes tasks of the type that is named, in the world that is named; names are `module:attribute`."""

    def __init__(self, settings: ConnectSettings, *, task_type: str = RUNNING_TASK, world: str = OPEN_WORLD) -> None:
        self.settings = settings
        self.task_type = task_type
        self.world = world
        self._lock = threading.Lock()
        self._opened: World | None = None

    def open(self) -> World:
        """Open the world, unless it is open; raises what keeps it from opening."""
        with self._lock:
            if self._opened is None:
                self._opened = cast("Callable[[ConnectSettings], World]", named(self.world))(self.settings)
            return self._opened

    def __call__(self, plan: TaskPlan) -> Task:
        """A task that has not begun yet."""
        world = self.open()
        return cast("Callable[[TaskPlan, World], Task]", named(self.task_type))(plan, world)

    def close(self) -> None:
        """Close the world; no task runs any more."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None


def named(path: str) -> object:
    """What `module:attribute` stands for."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
