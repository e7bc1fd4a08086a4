"""A host process as its worker sees it."""

import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from connect.executors.handover import text_of
from connect.executors.hosts.messages import (
    Cancel,
    Counted,
    Ended,
    Hello,
    SetTarget,
    Start,
    Stop,
    ToHost,
    from_host,
    line_of,
)
from connect.executors.task_factory import TaskFactory
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.stores.states import Target, TaskId

log = logging.getLogger(__name__)

_SEND_TIMEOUT_S: Final = 5
_END_TIMEOUT_S: Final = 5.0


class HostedTask:
    """A task in a host process."""

    def __init__(self, plan: TaskPlan, host: "HostProcess") -> None:
        self.plan = plan
        self.host = host
        self.counters: TaskCounters | None = None
        self.was_stopped = False
        self._ended = threading.Event()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is about to."""
        return not self._ended.is_set()

    def set_target(self, target: Target) -> None:
        """Pause or go on."""
        self.host.tell(SetTarget(self.plan.id, target))

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self.was_stopped = True
        self.host.tell(Stop(self.plan.id))

    def cancel(self) -> None:
        """It must write nothing more."""
        self.was_stopped = True
        self.host.tell(Cancel(self.plan.id))

    def join(self, timeout_seconds: float) -> bool:
        """Wait for its end; True when it has come."""
        return self._ended.wait(max(0.0, timeout_seconds))

    def kill(self) -> bool:
        """End its process; the other tasks there are lost with it and begin again elsewhere."""
        self.host.kill()
        return True

    def has_ended(self) -> None:
        """The host says so, or is dead."""
        self._ended.set()


class HostProcess:
    """One process with its tasks. `on_death` gets the tasks that died with it, on a thread of its own."""

    def __init__(
        self, factory: TaskFactory, *, on_death: Callable[["HostProcess", list[HostedTask], str], None]
    ) -> None:
        self._on_death = on_death
        self._lock = threading.Lock()
        self._tasks: dict[TaskId, HostedTask] = {}
        self._connection, theirs = socket.socketpair()
        limit = struct.pack("ll", _SEND_TIMEOUT_S, 0)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        with theirs:
            self._process = _started(theirs.fileno())
        self.is_alive = True
        self._started_at = time.monotonic()
        hello = Hello(
            parent_pid=os.getpid(),
            settings=text_of(factory.settings),
            task_type=factory.task_type,
            world=factory.world,
        )
        self.tell(hello)
        threading.Thread(target=self._listen, name=f"host-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def age_s(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self._started_at

    @property
    def tasks(self) -> list[HostedTask]:
        """Those that run in it."""
        with self._lock:
            return [task for task in self._tasks.values() if task.is_alive]

    def start(self, plan: TaskPlan) -> HostedTask | None:
        """Run a task there; None when the process has just died."""
        task = HostedTask(plan, self)
        with self._lock:
            if not self.is_alive:
                return None
            self._tasks[plan.id] = task
        self.tell(Start(plan))
        return task

    def tell(self, message: ToHost) -> None:
        """Send a message; a host that takes none for seconds is of no use any more."""
        try:
            with self._lock:
                self._connection.sendall(line_of(message))
        except OSError:
            self.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """End the process; its tasks have been stopped before."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
            self._process.wait(_END_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
        self._process.wait(_END_TIMEOUT_S)

    def _listen(self) -> None:
        try:
            with self._connection.makefile("rb") as stream:
                for message in from_host(stream):
                    self._take(message)
        except (OSError, ValueError):
            log.exception("host process does not speak as it should", extra={"pid": self.pid})
        self._died()

    def _take(self, message: Ended | Counted) -> None:
        with self._lock:
            task = self._tasks.pop(message.id, None) if isinstance(message, Ended) else self._tasks.get(message.id)
        match message:
            case Ended() if task is not None:
                task.has_ended()
            case Counted(_, counters) if task is not None:
                task.counters = counters
            case _:
                pass

    def _died(self) -> None:
        self.kill()
        code = self._process.wait()
        self._connection.close()
        with self._lock:
            self.is_alive = False
            lost = list(self._tasks.values())
            self._tasks.clear()
        self._on_death(self, lost, f"its process {self.pid} ended with code {code}")


def _started(descriptor: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "connect.executors.hosts", str(descriptor)]
    # What a connector prints must not get between the lines of the worker's own output.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[descriptor])
