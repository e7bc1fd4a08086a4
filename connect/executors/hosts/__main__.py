"""A process that runs tasks for a worker: `python -m connect.executors.hosts FD`, where FD is a connected socket.

It ends as soon as the worker does, so that no task outlives its worker: the kernel kills it, or it exits at the end
of the connection.
"""

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, assert_never

from connect.executors.hosts.messages import (
    Cancel,
    Counted,
    Ended,
    Hello,
    SetTarget,
    Start,
    Stop,
    ToHost,
    ToWorker,
    decode_for_host,
    encode,
)
from connect.executors.hosts.parent_death import die_with_parent
from connect.runtime.tasks.running_task import RunningTask
from connect.runtime.tasks.services import LazyServices, TaskServices, open_services
from connect.settings import ConnectSettings
from connect.stores.states import TaskId
from core_broker.service import logs

_COUNT_EVERY_MS: Final = 1000


class Host:
    """The tasks of this process."""

    def __init__(self, connection: socket.socket, services: LazyServices, task_class: type[RunningTask]) -> None:
        self._connection = connection
        self._services = services
        self._task_class = task_class
        self._lock = threading.Lock()
        self._tasks: dict[TaskId, RunningTask] = {}

    def handle(self, message: ToHost) -> None:
        """Carry out a request of the worker."""
        match message:
            case Start(plan):
                task = self._task_class(plan, self._services, on_end=self._on_end)
                self._tasks[plan.id] = task
                task.start()
            case SetTarget(task_id, target):
                if (found := self._tasks.get(task_id)) is not None:
                    found.set_target(target)
            case Stop(task_id):
                if (found := self._tasks.get(task_id)) is not None:
                    found.stop()
            case Cancel(task_id):
                if (found := self._tasks.get(task_id)) is not None:
                    found.cancel()
            case Hello():
                raise ValueError("a second Hello from the worker")
            case _:
                assert_never(message)

    def send_counters(self) -> None:
        """Send the counters of each task to the worker."""
        for task_id, task in list(self._tasks.items()):
            self._send(Counted(task_id, task.counters))

    def _on_end(self, task: RunningTask) -> None:
        del self._tasks[task.plan.id]
        self._send(Ended(task.plan.id))

    def _send(self, message: ToWorker) -> None:
        with self._lock:
            try:
                self._connection.sendall(encode(message))
            except OSError:
                os._exit(1)  # the worker is gone


def main(
    *,
    task_class: type[RunningTask] = RunningTask,
    connect: Callable[[ConnectSettings], TaskServices] = open_services,
) -> None:
    """Run tasks for as long as the worker lives; threads and their resources end with the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to the whole process group; the worker decides when tasks end
    connection = socket.socket(fileno=int(sys.argv[1]))
    lines = _lines(connection)
    first = next(filter(None, lines), None)
    hello = None if first is None else decode_for_host(first)
    if not isinstance(hello, Hello):
        sys.exit(1)  # the worker is gone
    die_with_parent(hello.parent_pid)
    settings = ConnectSettings.parse(hello.settings)
    logs.configure(level=settings.logging_level, style=settings.logging_format)
    host = Host(connection, LazyServices(settings, connect=connect), task_class)
    for line in lines:
        if line:
            host.handle(decode_for_host(line))
        else:
            host.send_counters()
    os._exit(0)


def _lines(connection: socket.socket) -> Iterator[bytes]:
    """The worker's messages, until it closes the connection or dies; an empty line about every second."""
    poll, buffer, counted_at = select.poll(), bytearray(), time.monotonic()
    poll.register(connection, select.POLLIN)
    while True:
        if poll.poll(_COUNT_EVERY_MS):
            chunk = connection.recv(1 << 16)
            if not chunk:
                return
            buffer += chunk
            *lines, rest = buffer.split(b"\n") if b"\n" in chunk else [buffer]
            buffer = rest
            yield from map(bytes, lines)
        if time.monotonic() - counted_at >= _COUNT_EVERY_MS / 1000:
            counted_at = time.monotonic()
            yield b""


if __name__ == "__main__":
    main()
