"""Runs tasks on this machine: in threads of the worker, or in a few host processes."""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from connect.api.backoff import Backoff
from connect.executors.hosts.process import HOST_MODULE, HostedTask, HostProcess
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.runtime.stopping import CANCEL_GRACE_S
from connect.runtime.tasks.running_task import RunningTask
from connect.runtime.tasks.services import LazyServices
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_EARLY_S: Final = 10.0
_EARLY_DEATHS: Final = Backoff(1.0, 30.0)

AnyTask = RunningTask | HostedTask


class InProcess:
    """The executor of one worker: `task.processes` is the most host processes, 0 for threads only."""

    def __init__(
        self,
        settings: ConnectSettings,
        *,
        services: LazyServices | None = None,
        task_class: type[RunningTask] = RunningTask,
        host_module: str = HOST_MODULE,
    ) -> None:
        """`services` and `task_class` are for tasks in threads, `host_module` is the main module of host processes."""
        self.on_lost: Callable[[TaskId, str], None] = lambda _, __: None
        self._settings = settings
        self._graceful_s = settings.task_shutdown_graceful_timeout_ms / 1000
        self._services = services or LazyServices(settings)
        self._task_class = task_class
        self._host_module = host_module
        self._lock = threading.RLock()
        self._tasks: dict[TaskId, AnyTask] = {}
        self._hosts: list[HostProcess] = []
        wanted = settings.task_processes
        self._hosts_max = len(os.sched_getaffinity(0)) if wanted < 0 else wanted
        self._delayed: dict[TaskId, TaskPlan] = {}
        # The kernel kills a host when the thread that started it ends, so that thread is kept.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="host-starter")
        self._closed = threading.Event()
        self._early_deaths = 0

    def start(self, plan: TaskPlan) -> None:
        """Run a task; if it runs already, that run is stopped first."""
        self.stop([plan.id])
        with self._lock:
            if self._closed.is_set():
                return
            before = self._tasks.get(plan.id)
            if before is not None and before.is_alive:
                # A thread that hangs in its connector, or a run that another thread has just started.
                self._delayed[plan.id] = plan
                log.warning("task starts when its former run has ended", extra={"task": str(plan.id)})
            else:
                self._tasks[plan.id] = self._run(plan)

    def set_target(self, task_id: TaskId, target: Target) -> None:
        """Pause or resume a task."""
        with self._lock:
            task = self._tasks.get(task_id)
        if task is not None and task.is_alive:
            task.set_target(target)

    def stop(self, ids: Collection[TaskId]) -> None:
        """Return when none of these tasks runs."""
        with self._lock:
            for task_id in ids:
                self._delayed.pop(task_id, None)
            tasks = [task for task_id in ids if (task := self._tasks.get(task_id)) is not None and task.is_alive]
        stop_all(tasks, graceful_s=self._graceful_s)
        with self._lock:
            for task in tasks:
                if not task.is_alive and self._tasks.get(task.plan.id) is task:
                    del self._tasks[task.plan.id]

    def running_tasks(self) -> set[TaskId]:
        """The tasks that run now."""
        with self._lock:
            return {task_id for task_id, task in self._tasks.items() if task.is_alive}

    def counters(self) -> dict[TaskId, TaskCounters]:
        """The counters of each; those of hosts are at most about a second old."""
        with self._lock:
            tasks = list(self._tasks.items())
        return {task_id: found for task_id, task in tasks if task.is_alive and (found := task.counters) is not None}

    def close(self) -> None:
        """Stop all tasks and processes."""
        with self._lock:
            self._closed.set()
            tasks = [task for task in self._tasks.values() if task.is_alive]
            hosts, self._hosts = self._hosts, []
        stop_all(tasks, graceful_s=self._graceful_s)
        for host in hosts:
            host.close()
        self._starter.shutdown()
        self._services.close()

    def _run(self, plan: TaskPlan) -> AnyTask:
        while self._hosts_max:
            if (hosted := self._host_for(plan.id).start(plan)) is not None:
                return hosted
        task = self._task_class(plan, self._services, on_end=self._on_thread_end)
        task.start()
        return task

    def _host_for(self, task_id: TaskId) -> HostProcess:
        """The host with the fewest tasks of this connector, then of all; a new one if no host is idle."""

        def load(host: HostProcess) -> tuple[int, int]:
            tasks = host.tasks
            return sum(task.plan.id.connector == task_id.connector for task in tasks), len(tasks)

        living = [host for host in self._hosts if host.is_alive]
        best = min(living, key=load, default=None)
        if best is None or (len(living) < self._hosts_max and load(best) > (0, 0)):
            start = self._starter.submit(
                HostProcess, self._settings, module=self._host_module, on_death=self._on_host_death
            )
            best = start.result()
            self._hosts = [*living, best]
        return best

    def _on_host_death(self, host: HostProcess, tasks: list[HostedTask], reason: str) -> None:
        with self._lock:
            self._hosts = [other for other in self._hosts if other is not host]
            self._early_deaths = self._early_deaths + 1 if host.age_s < _EARLY_S else 0
            delay = 0.0 if self._early_deaths < 2 else _EARLY_DEATHS.delay(self._early_deaths - 2)
        for task in tasks:
            task.ended.set()
        lost = [task.plan.id for task in tasks if not task.was_stopped]
        # A task that crashes its process as soon as it runs must not keep the machine busy with new processes.
        if not lost or self._closed.wait(delay):
            return
        for task_id in lost:
            log.error("task lost", extra={"task": str(task_id), "reason": reason})
            self.on_lost(task_id, reason)

    def _on_thread_end(self, task: RunningTask) -> None:
        with self._lock:
            plan = self._delayed.pop(task.plan.id, None)
            if plan is not None and not self._closed.is_set():
                self._tasks[plan.id] = self._run(plan)


def stop_all(tasks: Collection[AnyTask], *, graceful_s: float) -> None:
    """Stop tasks: ask them, then cancel them, then kill their host process, if they have one.

    A thread that hangs is abandoned, cancelled.
    """
    for task in tasks:
        task.stop()
    late = _still_alive(tasks, graceful_s)
    for task in late:
        log.warning("task does not stop in time and is cancelled", extra={"task": str(task.plan.id)})
        task.cancel()
    for task in _still_alive(late, CANCEL_GRACE_S):
        has_process = isinstance(task, HostedTask)
        log.error("task hangs in its connector", extra={"task": str(task.plan.id), "process_killed": has_process})
        if isinstance(task, HostedTask):
            task.host.kill()
            task.join(CANCEL_GRACE_S)


def _still_alive(tasks: Collection[AnyTask], seconds: float) -> list[AnyTask]:
    deadline = time.monotonic() + seconds
    return [task for task in tasks if not task.join(deadline - time.monotonic())]
