"""The worker's side of a host process."""

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

from connect.executors.hosts.messages import (
    Cancel,
    Counted,
    Ended,
    Hello,
    SetTarget,
    Start,
    Stop,
    ToHost,
    decode_for_worker,
    encode,
)
from connect.runtime.counters import TaskCounters
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import Target, TaskId
from core_broker.service.settings import Settings

log = logging.getLogger(__name__)

HOST_MODULE: Final = "connect.executors.hosts"
_SEND_TIMEOUT_S: Final = 5
_END_TIMEOUT_S: Final = 5.0


class HostedTask:
    """A task in a host process."""

    def __init__(self, plan: TaskPlan, host: "HostProcess") -> None:
        self.plan = plan
        self.host = host
        self.counters: TaskCounters | None = None
        self.was_stopped = False
        self.ended = threading.Event()
        """Set when the host reports the end, or dies."""

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is about to."""
        return not self.ended.is_set()

    def set_target(self, target: Target) -> None:
        """Pause or resume it."""
        self.host.send(SetTarget(self.plan.id, target))

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self.was_stopped = True
        self.host.send(Stop(self.plan.id))

    def cancel(self) -> None:
        """It must not write anything more."""
        self.was_stopped = True
        self.host.send(Cancel(self.plan.id))

    def join(self, timeout_seconds: float) -> bool:
        """Wait for its end; True when it has ended."""
        return self.ended.wait(max(0.0, timeout_seconds))


class HostProcess:
    """One process with its tasks. `on_death` gets the tasks that died with it, on a separate thread."""

    def __init__(
        self,
        settings: ConnectSettings,
        *,
        module: str = HOST_MODULE,
        on_death: Callable[["HostProcess", list[HostedTask], str], None],
    ) -> None:
        self._on_death = on_death
        self._lock = threading.Lock()
        self._tasks: dict[TaskId, HostedTask] = {}
        self._connection, theirs = socket.socketpair()
        limit = struct.pack("ll", _SEND_TIMEOUT_S, 0)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        with theirs:
            command = [sys.executable, "-m", module, str(theirs.fileno())]
            # The output of a connector must not mix with the worker's own.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()])
        self.is_alive = True
        self._started_at = time.monotonic()
        self.send(Hello(parent_pid=os.getpid(), settings=settings_text(settings)))
        threading.Thread(target=self._listen, name=f"host-{self._process.pid}", daemon=True).start()

    @property
    def age_s(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self._started_at

    @property
    def tasks(self) -> list[HostedTask]:
        """The tasks that run in it."""
        with self._lock:
            return [task for task in self._tasks.values() if task.is_alive]

    def start(self, plan: TaskPlan) -> HostedTask | None:
        """Run a task there; None when the process has just died."""
        task = HostedTask(plan, self)
        with self._lock:
            if not self.is_alive:
                return None
            self._tasks[plan.id] = task
        self.send(Start(plan))
        return task

    def send(self, message: ToHost) -> None:
        """Send a message; a host that does not accept it within seconds is killed."""
        try:
            with self._lock:
                self._connection.sendall(encode(message))
        except OSError:
            self.kill()

    def kill(self) -> None:
        """Kill the process; its tasks are lost with it and start elsewhere."""
        self._process.kill()

    def close(self) -> None:
        """End the process; its tasks were stopped before."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
            self._process.wait(_END_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
        self._process.wait(_END_TIMEOUT_S)

    def _listen(self) -> None:
        try:
            with self._connection.makefile("rb") as stream:
                for line in stream:
                    if line.endswith(b"\n"):  # a host may die in the middle of a line
                        self._handle(decode_for_worker(line))
        except (OSError, ValueError):
            log.exception("host process sent an invalid message", extra={"pid": self._process.pid})
        self.kill()
        code = self._process.wait()
        self._connection.close()
        with self._lock:
            self.is_alive = False
            lost = list(self._tasks.values())
            self._tasks.clear()
        self._on_death(self, lost, f"its process {self._process.pid} ended with code {code}")

    def _handle(self, message: Ended | Counted) -> None:
        with self._lock:
            task = self._tasks.pop(message.id, None) if isinstance(message, Ended) else self._tasks.get(message.id)
        if task is None:
            return
        if isinstance(message, Counted):
            task.counters = message.counters
        else:
            task.ended.set()


def settings_text(settings: Settings) -> dict[str, str]:
    """The settings that were set, with the keys of a properties file, so that another process can parse them."""
    values: dict[str, str] = {}
    for key in settings.set:
        definition = settings.DEFINITIONS[key]
        if definition.prefix:
            values |= {f"{definition.prefix}{name}": text for name, text in getattr(settings, definition.name)}
        elif (text := settings.text_of(key)) is not None:
            values[key] = text
    return values
