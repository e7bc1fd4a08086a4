"""A process that runs tasks for a worker: `python -m connect.executors.hosts FD`, where FD is a connected socket.

It ends the moment the worker does, so that no task outlives its worker: the kernel kills it, and should that not be
possible, the end of the connection does.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final, assert_never

from connect.executors.hosts.messages import (
    Cancel,
    Counted,
    Ended,
    Hello,
    SetLevel,
    SetTarget,
    Start,
    Stop,
    ToHost,
    ToWorker,
    from_worker,
    line_of,
)
from connect.executors.hosts.parent_death import die_with_parent
from connect.executors.local_task import LocalTask
from connect.executors.task_factory import TaskFactory
from connect.runtime.models import TaskPlan
from connect.settings import ConnectSettings
from connect.stores.states import TaskId
from core_broker.service import logs

log = logging.getLogger(__name__)

_COUNT_EVERY_S: Final = 1.0


class Host:
    """The tasks of this process, as the worker wants them."""

    def __init__(self, connection: socket.socket, factory: TaskFactory) -> None:
        self._connection = connection
        self._factory = factory
        self._lock = threading.Lock()
        self._tasks: dict[TaskId, LocalTask] = {}

    def obey(self, messages: Iterator[ToHost]) -> None:
        """Do what the worker says until it says nothing more."""
        threading.Thread(target=self._count, name="counters", daemon=True).start()
        for message in messages:
            self._do(message)

    def _do(self, message: ToHost) -> None:
        match message:
            case Start(plan):
                self._start(plan)
            case SetTarget(task_id, target):
                if (found := self._tasks.get(task_id)) is not None:
                    found.set_target(target)
            case Stop(task_id):
                if (found := self._tasks.get(task_id)) is not None:
                    found.stop()
            case Cancel(task_id):
                if (found := self._tasks.get(task_id)) is not None:
                    found.cancel()
            case SetLevel(logger, level):
                logging.getLogger(None if logger == "root" else logger).setLevel(level)
            case Hello():
                raise ValueError("the worker said hello twice")
            case _:
                assert_never(message)

    def _start(self, plan: TaskPlan) -> None:
        task = LocalTask(plan, self._factory, on_end=self._ended)
        self._tasks[plan.id] = task
        task.start()

    def _ended(self, task: LocalTask) -> None:
        del self._tasks[task.plan.id]
        self._say(Ended(task.plan.id))

    def _count(self) -> None:
        while True:
            time.sleep(_COUNT_EVERY_S)
            for task_id, task in list(self._tasks.items()):
                if (counters := task.counters) is not None:
                    self._say(Counted(task_id, counters))

    def _say(self, message: ToWorker) -> None:
        with self._lock:
            try:
                self._connection.sendall(line_of(message))
            except OSError:
                os._exit(1)  # the worker is gone


def main() -> int:
    """Run tasks for as long as the worker lives; threads and what they hold end with the process, at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to the whole group; the worker tells when tasks end
    connection = socket.socket(fileno=int(sys.argv[1]))
    messages = from_worker(connection.makefile("rb"))
    hello = next(messages, None)
    if not isinstance(hello, Hello):
        return 1
    die_with_parent(hello.parent_pid)
    settings = ConnectSettings.parse(hello.settings)
    logs.configure(level=settings.logging_level, style=settings.logging_format)
    factory = TaskFactory(settings, task_type=hello.task_type, world=hello.world)
    Host(connection, factory).obey(messages)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
