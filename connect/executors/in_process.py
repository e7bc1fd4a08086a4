"""Runs tasks on this machine: in threads of the worker, or spread over a few processes of its own."""

import logging
import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from connect.executors.ending import stop_all
from connect.executors.hosts.messages import SetLevel
from connect.executors.hosts.process import HostedTask, HostProcess
from connect.executors.local_task import LocalTask
from connect.executors.task_factory import TaskFactory
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_EARLY_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 30.0


class InProcess:
    """An executor of one worker: `task.processes` says how many host processes there may be, 0 that there are none."""

    def __init__(self, settings: ConnectSettings, *, factory: TaskFactory | None = None) -> None:
        self.on_lost: Callable[[TaskId, str], None] = _nobody_listens
        self._graceful_s = settings.task_shutdown_graceful_timeout_ms / 1000
        self._factory = factory or TaskFactory(settings)
        self._lock = threading.RLock()
        self._tasks: dict[TaskId, LocalTask | HostedTask] = {}
        self._hosts: list[HostProcess] = []
        self._hosts_max = processes(settings.task_processes)
        self._delayed: dict[TaskId, TaskPlan] = {}
        # Hosts die with the thread that started them, so that one is kept.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="host-starter")
        self._closed = threading.Event()
        self._early_deaths = 0
        self._levels: dict[str, str] = {}

    def start(self, plan: TaskPlan) -> None:
        """Run a task; if it runs already, that run is ended first."""
        self.stop([plan.id])
        with self._lock:
            if self._closed.is_set():
                return
            before = self._tasks.get(plan.id)
            if before is not None and before.is_alive:
                # A thread that hangs in its connector, or somebody else who started the task just now.
                self._delayed[plan.id] = plan
                log.warning("task begins when its former run has ended", extra={"task": str(plan.id)})
            else:
                self._tasks[plan.id] = self._started(plan)

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause a task, or let it go on."""
        with self._lock:
            task = self._tasks.get(task_id)
        if task is not None and task.is_alive:
            task.set_target(target)

    def stop(self, ids: Collection[TaskId]) -> None:
        """Return when none of these tasks runs any more."""
        with self._lock:
            for task_id in ids:
                self._delayed.pop(task_id, None)
            tasks = [task for task_id in ids if (task := self._tasks.get(task_id)) is not None and task.is_alive]
        if not tasks:
            return
        stop_all(tasks, graceful_s=self._graceful_s)
        with self._lock:
            for task in tasks:
                if not task.is_alive and self._tasks.get(task.plan.id) is task:
                    del self._tasks[task.plan.id]

    def owned(self) -> set[TaskId]:
        """The tasks that run now."""
        with self._lock:
            return {task_id for task_id, task in self._tasks.items() if task.is_alive}

    def counters(self) -> dict[TaskId, TaskCounters]:
        """What each of them has done so far; those of hosts are at most about a second old."""
        with self._lock:
            tasks = list(self._tasks.items())
        return {task_id: found for task_id, task in tasks if task.is_alive and (found := task.counters) is not None}

    def set_level(self, logger: str, level: str) -> None:
        """Log more or less of what hosts do, those to come too; the worker's own logs are not touched."""
        with self._lock:
            self._levels[logger] = level
            hosts = list(self._hosts)
        for host in hosts:
            host.tell(SetLevel(logger, level))

    def close(self) -> None:
        """End all tasks and processes."""
        with self._lock:
            self._closed.set()
            tasks = [task for task in self._tasks.values() if task.is_alive]
            hosts, self._hosts = self._hosts, []
        stop_all(tasks, graceful_s=self._graceful_s)
        for host in hosts:
            host.close()
        self._starter.shutdown()
        self._factory.close()

    def _started(self, plan: TaskPlan) -> LocalTask | HostedTask:
        while self._hosts_max:
            if (hosted := self._host_for(plan.id).start(plan)) is not None:
                return hosted
        task = LocalTask(plan, self._factory, on_end=self._thread_ended)
        task.start()
        return task

    def _host_for(self, task_id: TaskId) -> HostProcess:
        """The host with the fewest tasks of this connector, and of all; a new one if that has fewer."""
        living = [host for host in self._hosts if host.is_alive]
        best = min(living, key=lambda host: _load(host, task_id), default=None)
        if best is None or (len(living) < self._hosts_max and _load(best, task_id) > (0, 0)):
            best = self._starter.submit(HostProcess, self._factory, on_death=self._host_died).result()
            self._hosts = [*living, best]
            for logger, level in self._levels.items():
                best.tell(SetLevel(logger, level))
        return best

    def _host_died(self, host: HostProcess, tasks: list[HostedTask], reason: str) -> None:
        with self._lock:
            self._hosts = [other for other in self._hosts if other is not host]
            self._early_deaths = self._early_deaths + 1 if host.age_s < _EARLY_S else 0
            pause = 0.0 if self._early_deaths < 2 else min(2.0**self._early_deaths / 4, _LONGEST_PAUSE_S)
        for task in tasks:
            task.has_ended()
        lost = [task.plan.id for task in tasks if not task.was_stopped]
        # A task that kills its process as soon as it runs must not keep the machine busy with new ones.
        if not lost or self._closed.wait(pause):
            return
        for task_id in lost:
            log.error("task lost", extra={"task": str(task_id), "reason": reason})
            self.on_lost(task_id, reason)

    def _thread_ended(self, task: LocalTask) -> None:
        with self._lock:
            plan = self._delayed.pop(task.plan.id, None)
            if plan is not None and not self._closed.is_set():
                self._tasks[plan.id] = self._started(plan)


def processes(wanted: int) -> int:
    """How many host processes `task.processes` means."""
    return len(os.sched_getaffinity(0)) if wanted < 0 else wanted


def _load(host: HostProcess, task_id: TaskId) -> tuple[int, int]:
    tasks = host.tasks
    return sum(task.plan.id.connector == task_id.connector for task in tasks), len(tasks)


def _nobody_listens(task_id: TaskId, reason: str) -> None:
    log.warning("nobody starts a lost task again", extra={"task": str(task_id), "reason": reason})
