"""The Celery application: its configuration, and its only Celery task, which runs a task of Connect.

Celery only wakes up workers and distributes work. A message is acknowledged before it runs and is never redelivered;
the lease decides whether the task runs. A running task occupies a slot of its worker, so `--concurrency` is the number
of tasks per worker.
"""

import logging
import mmap
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from celery import Celery, Task, signals  # type: ignore[import-untyped]  # it ships no types
from msgspec.structs import replace

from connect.executors.celery.leased_run import LeasedRun, boot_time
from connect.executors.celery.leases import Leases, Refused, touch
from connect.executors.hosts.parent_death import die_with_parent
from connect.runtime.models import TaskPlan
from connect.runtime.tasks.running_task import RunningTask
from connect.runtime.tasks.services import LazyServices
from connect.settings import ConnectSettings
from connect.stores.states import TaskId
from core_broker.service import logs

log = logging.getLogger(__name__)

RUN: Final = "caudal.connect.run"
_HEALTH_S: Final = 10
_FAREWELL_S: Final = 1.0
"""How long a child that was asked to end may take to report the end of its task."""


def create_app(settings: ConnectSettings) -> Any:
    """A Celery application that can send messages; `serve` turns it into a worker."""
    app = Celery("caudal-connect", broker=settings.celery_broker_url, set_as_current=False)
    transport = {
        # Nothing is delivered twice anyway. With it, an acknowledgement that fails costs the worker a slot for ever.
        "ack_emulation": False,
        "socket_keepalive": True,
        "socket_timeout": _HEALTH_S,
        "socket_connect_timeout": 5,
        "health_check_interval": _HEALTH_S,
    }
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_backend=None,
        task_ignore_result=True,
        task_default_queue=settings.celery_queue,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=True,
        worker_soft_shutdown_timeout=settings.task_shutdown_graceful_timeout_ms / 1000,
        worker_consumer="connect.executors.celery.consumer:PromptConsumer",
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=transport,
    )
    return app


def serve(app: Any, services: LazyServices, task_class: type[RunningTask] = RunningTask) -> Any:
    """Let workers of this application run tasks; returns the application."""
    slots = Slots(services, task_class)

    def run(self: Task, connector: str, task: int, generation: int, epoch: int) -> str:
        return slots.run(TaskId(connector, task), generation=generation, epoch=epoch, worker=self.request.hostname)

    def configure_logs(**_: object) -> None:
        logs.configure(level=services.settings.logging_level, style=services.settings.logging_format)

    app.task(run, name=RUN, bind=True, ignore_result=True)
    parent: list[int] = []
    # Celery keeps weak references by default, and nothing else refers to these functions.
    signals.setup_logging.connect(configure_logs, weak=False)
    signals.worker_shutting_down.connect(lambda **_: slots.drain(), weak=False)
    signals.worker_ready.connect(lambda **_: touch(services.settings), weak=False)
    signals.worker_init.connect(lambda **_: parent.append(os.getpid()), weak=False)
    signals.worker_process_init.connect(lambda **_: slots.become_child(parent[-1]), weak=False)
    return app


class Slots:
    """Handles the messages of one Celery worker, in its own process or in forked children."""

    def __init__(self, services: LazyServices, task_class: type[RunningTask]) -> None:
        self._services = services
        self._task_class = task_class
        self._graceful_s = services.settings.task_shutdown_graceful_timeout_ms / 1000
        self._draining = mmap.mmap(-1, 1)  # shared with children
        self._is_child = False
        self._lock = threading.Lock()
        self._leases: Leases | None = None

    def become_child(self, parent_pid: int) -> None:
        """This process was forked by the worker, for one task at a time."""
        die_with_parent(parent_pid)
        self._is_child = True

    def drain(self) -> None:
        """The worker shuts down: stop running tasks, so that other workers can take them."""
        self._draining[0] = 1

    def run(self, task_id: TaskId, *, generation: int, epoch: int, worker: str) -> str:
        """Run the task if its lease is free; returns the outcome when it has ended."""
        self._services.open()  # a worker that cannot reach the cluster must not take tasks from those that can
        leases, owner, asked_at = self._open_leases(), f"{worker}/{os.getpid()}/{secrets.token_hex(8)}", boot_time()
        if self._is_draining():
            return "draining"
        claim = leases.claim(task_id, generation=generation, epoch=epoch, owner=owner)
        if isinstance(claim, Refused):
            log.debug("lease refused", extra={"task": str(task_id), "reason": claim.value})
            return claim.value
        planned = msgspec.json.decode(claim.plan, type=TaskPlan)
        # The status shows the worker that runs a task, not the one that planned it.
        plan = replace(planned, epoch=claim.epoch, target=claim.target, worker_id=worker)
        log.info("task claimed", extra={"task": str(task_id), "generation": generation, "epoch": plan.epoch})
        run = LeasedRun(
            leases,
            plan,
            owner=owner,
            claimed_at=asked_at,
            graceful_s=self._graceful_s,
            is_draining=self._is_draining,
        )
        with self._finish_task_first():
            run.run(self._task_class(plan, self._services, is_owner=run.is_owner))
        log.info("task left", extra={"task": str(task_id), "generation": generation, "epoch": plan.epoch})
        return "left"

    @contextmanager
    def _finish_task_first(self) -> Iterator[None]:
        """A child that gets a signal while it runs a task stops the task first: signals often go to a whole group."""
        if not self._is_child:
            yield
            return
        signals_received: list[int] = []

        def leave(number: int, _: object) -> None:
            signals_received.append(number)
            self.drain()

        before = signal.signal(signal.SIGTERM, leave)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
            if signals_received:
                end = threading.Timer(_FAREWELL_S, os._exit, [0])
                end.daemon = True
                end.start()

    def _is_draining(self) -> bool:
        return self._draining[0] != 0

    def _open_leases(self) -> Leases:
        """One client per process, made after the fork."""
        with self._lock:
            if self._leases is None:
                self._leases = Leases(self._services.settings)
            return self._leases
