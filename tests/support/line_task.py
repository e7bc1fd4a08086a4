"""A task type that tells in a file when it begins, lives and ends, so that two owners at once are seen."""

import os
import secrets
import signal
import time
from pathlib import Path
from typing import NamedTuple, cast

import psutil
from typing_extensions import override

from connect.runtime.models import Target
from connect.runtime.tasks.running_task import RunningTask
from connect.runtime.tasks.services import TaskServices
from connect.settings import ConnectSettings

PULSE_S = 0.02


class Line(NamedTuple):
    """One line of the file; `at` is the machine's monotonic clock, the same for all processes."""

    at: float
    task: str
    epoch: int
    pid: int
    run: str
    word: str


class LineServices(NamedTuple):
    """Tasks that write lines share nothing."""

    settings: ConnectSettings

    def close(self) -> None:
        """There is nothing to close."""


def line_services(settings: ConnectSettings) -> TaskServices:
    """The services of tasks that need none."""
    return cast("TaskServices", LineServices(settings))


def deadly_services(settings: ConnectSettings) -> TaskServices:
    """Kills its Celery worker the first time: a message has been taken, and nothing was done about it yet."""
    trap = Path(dict(settings.client_properties)["test.trap"])
    if trap.exists():
        trap.unlink()
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    return line_services(settings)


class LineTask(RunningTask):
    """Writes `begin`, `beat` again and again, `paused` while it is, and `end`, as its configuration says where.

    `line.hangs=FILE`: it does not end before that file is there; `line.fails.after=N`: it ends by itself after N beats;
    `line.dies.after=N`: it takes its process with it.
    """

    @override
    def run(self) -> None:
        config = self.plan.task_config
        self._run_token = secrets.token_hex(4)
        hangs, dies_after = config.get("line.hangs"), int(config.get("line.dies.after", "-1"))
        beats, beats_left = 0, int(config.get("line.fails.after", "-1"))
        self._write("begin")
        while beats_left and not self._stopping.wait(PULSE_S):
            beats_left -= 1
            self.counters.source_record_poll += 1
            self._write("beat" if self._target is Target.STARTED else "paused")
            beats += 1
            if beats == dies_after:
                os.kill(os.getpid(), signal.SIGKILL)
        while hangs and not Path(hangs).exists():
            time.sleep(PULSE_S)
        self._write("end")

    def _write(self, word: str) -> None:
        if self._stopping.is_cancelled:
            return
        line = f"{time.monotonic():.6f} {self.plan.id} {self.plan.epoch} {os.getpid()} {self._run_token} {word}\n"
        descriptor = os.open(self.plan.task_config["line.file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
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
