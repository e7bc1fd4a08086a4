"""A task type that tells in a file when it begins, lives and ends, so that two owners at once are seen."""

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from connect.runtime.counters import TaskCounters
from connect.runtime.models import Target, TaskPlan
from connect.settings import ConnectSettings

TASK_TYPE = "tests.support.line_task:LineTask"
WORLD = "tests.support.line_task:LineWorld"
PULSE_S = 0.02


class Line(NamedTuple):
    """One line of the file; `at` is the machine's monotonic clock, the same for all processes."""

    at: float
    task: str
    epoch: int
    pid: int
    run: str
    word: str


class LineWorld:
    """Nothing is shared by tasks that write lines."""

    def __init__(self, settings: ConnectSettings) -> None:
        self.settings = settings

    def close(self) -> None:
        """There is nothing to close."""


class DeadlyWorld(LineWorld):
    """Kills its Celery worker the first time: a message has been taken, and nothing was done about it yet."""

    def __init__(self, settings: ConnectSettings) -> None:
        super().__init__(settings)
        trap = Path(dict(settings.client_properties)["test.trap"])
        if trap.exists():
            trap.unlink()
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


class LineTask:
    """Writes `begin`, `beat` again and again, `paused` while it is, and `end`, as its configuration says where.

    `line.hangs=FILE`: it does not end before that file is there; `line.fails.after=N`: it ends by itself after N beats;
    `line.dies.after=N`: it takes its process with it.
    """

    def __init__(self, plan: TaskPlan, world: LineWorld) -> None:
        self.plan = plan
        self.counters = TaskCounters()
        self.is_owner: Callable[[], bool] = lambda: True
        self._path = Path(plan.task_config["line.file"])
        self._hangs = plan.task_config.get("line.hangs")
        self._beats_left = int(plan.task_config.get("line.fails.after", "-1"))
        self._dies_after = int(plan.task_config.get("line.dies.after", "-1"))
        self._beats = 0
        self._target = plan.target
        self._run_token = secrets.token_hex(4)
        self._stop = threading.Event()
        self._cancelled = False
        self._thread = threading.Thread(target=self._run, name="line-task", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def set_target(self, target: Target) -> None:
        """Pause or go on."""
        self._target = target

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def cancel(self) -> None:
        """End without another line."""
        self._cancelled = True
        self._stop.set()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the end."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._write("begin")
        while self._beats_left and not self._stop.wait(PULSE_S):
            self._beats_left -= 1
            self.counters.source_record_poll += 1
            self._write("beat" if self._target is Target.STARTED else "paused")
            self._beats += 1
            if self._beats == self._dies_after:
                os.kill(os.getpid(), signal.SIGKILL)
        while self._hangs and not Path(self._hangs).exists():
            time.sleep(PULSE_S)
        self._write("end")

    def _write(self, word: str) -> None:
        if self._cancelled or not self.is_owner():
            return
        line = f"{time.monotonic():.6f} {self.plan.id} {self.plan.epoch} {os.getpid()} {self._run_token} {word}\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def lines_of(path: Path, task: str | None = None) -> list[Line]:
    """What was written so far, by one task or all."""
    if not path.exists():
        return []
    words = [text.split() for text in path.read_text().splitlines()]
    lines = [Line(float(at), name, int(epoch), int(pid), run, word) for at, name, epoch, pid, run, word in words]
    return [line for line in lines if task is None or line.task == task]


def assert_never_twice(path: Path) -> None:
    """The runs of a task follow each other: once the next one writes, the former never writes again."""
    runs: dict[str, list[str]] = {}
    epochs: dict[str, int] = {}
    for line in sorted(lines_of(path)):
        seen = runs.setdefault(line.task, [])
        assert line.epoch >= epochs.get(line.task, 0), f"{line} comes from an owner of the past"
        epochs[line.task] = line.epoch
        if line.run not in seen:
            seen.append(line.run)
        assert seen[-1] == line.run, f"{line} was written after the next run had begun"


def is_running(pid: int) -> bool:
    """Whether a process lives; one that has ended and was not looked after yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
