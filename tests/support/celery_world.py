"""A leader's executor, and Celery workers as processes of their own, whose tasks write lines."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from connect.executors.celery.executor import CeleryExecutor
from connect.executors.hosts.process import settings_text
from connect.runtime.models import Target, TaskId, TaskPlan
from connect.settings import ConnectSettings
from tests.support.admin import eventually
from tests.support.line_task import Line, lines_of
from tests.support.redis_server import RedisServer
from tests.support.service import REPOSITORY

LEASE_MS = 1500


class LineWorker:
    """A Celery worker in a process group of its own."""

    def __init__(self, settings: ConnectSettings, log: Path, *, slots: int = 2, kind: str = "usual") -> None:
        pairs = [word for key, value in settings_text(settings).items() for word in ("--set", f"{key}={value}")]
        options = ["--concurrency", str(slots), "-n", f"{log.stem}@%h", "--loglevel", "INFO"]
        command = [sys.executable, "-m", "tests.support.line_worker", kind, *pairs, "--", *options]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=REPOSITORY, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """The id of its main process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the main process lives."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the main process at once."""
        self._process.kill()
        self._process.wait(60)

    def stop(self, *, is_group: bool = False) -> int:
        """Ask it to end, the main process or all of the group, and wait; the exit code."""
        (os.killpg if is_group else os.kill)(self.pid, signal.SIGTERM)
        return self._process.wait(60)

    def freeze(self) -> None:
        """Let all its processes stand still."""
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        os.killpg(self.pid, signal.SIGCONT)


class CeleryWorld:
    """A group of workers of its own, in a Redis that may be shared."""

    def __init__(self, redis: RedisServer, folder: Path, group: str, *, lease_ms: int = LEASE_MS) -> None:
        self.redis = redis
        self.folder = folder
        self.lines_file = folder / "lines"
        self.trap = folder / "trap"
        self.settings = ConnectSettings(
            executor="celery",
            group_id=group,
            celery_broker_url=redis.url,
            celery_queue=group,
            celery_lease_ms=lease_ms,
            task_shutdown_graceful_timeout_ms=1000,
            client_properties=(("test.trap", str(self.trap)),),
        )
        self._workers: list[LineWorker] = []
        self._executors: list[CeleryExecutor] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for executor in self._executors:
            executor.close()
        for worker in self._workers:
            worker.thaw() if worker.is_running else None
            worker.kill()

    def worker(self, name: str, *, slots: int = 2, kind: str = "usual") -> LineWorker:
        """Start a worker; it is not waited for."""
        worker = LineWorker(self.settings, self.folder / f"{name}.log", slots=slots, kind=kind)
        self._workers.append(worker)
        return worker

    def executor(self, *, settle_s: float = 60.0) -> CeleryExecutor:
        """A leader's executor."""
        executor = CeleryExecutor(self.settings, settle_s=settle_s)
        self._executors.append(executor)
        return executor

    def plan(self, connector: str = "c", task: int = 0, *, generation: int = 1, **config: str) -> TaskPlan:
        """A plan of a task that writes lines."""
        options = {"line.file": str(self.lines_file)} | {key.replace("_", "."): word for key, word in config.items()}
        return TaskPlan(
            id=TaskId(connector, task),
            connector_config={},
            task_config=options,
            target=Target.STARTED,
            generation=generation,
        )

    def lines(self, task: str | None = "c-0") -> list[Line]:
        """What a task has written so far, or all of them."""
        return lines_of(self.lines_file, task)

    def wait_for_beat(self, task: str = "c-0", *, unlike: Callable[[Line], bool] = lambda line: False) -> Line:
        """The next beat that is written from now on."""
        now = time.monotonic()

        def new_beats() -> list[Line]:
            lines = self.lines(task)
            return [line for line in lines if line.at > now and line.word == "beat" and not unlike(line)]

        return eventually(new_beats)[-1]

    def log_text(self) -> str:
        """What all workers have written."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))


@contextmanager
def shown_logs(world: CeleryWorld) -> Iterator[None]:
    """Show what workers wrote when the block fails."""
    try:
        yield
    except BaseException:
        sys.stderr.write(world.log_text()[-60_000:])
        raise
