"""Celery workers of Connect as an operator starts them."""

import subprocess
import sys
from itertools import count
from pathlib import Path

from tests.support.service import REPOSITORY

_numbers = count()


class CeleryWorkers:
    """Celery workers of one group, as an operator starts them."""

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        self._file = directory / "worker.properties"
        self._file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._log = directory / "celery.log"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *, slots: int = 1) -> None:
        """Start another one, for so many tasks."""
        name = f"worker{next(_numbers)}"
        command = [sys.executable, "-m", "connect.executors.celery.worker", "--config", str(self._file)]
        options = ["--", "--concurrency", str(slots), "-n", f"{name}@%h", "--loglevel", "INFO"]
        with self._log.open("ab") as log:
            self.processes[name] = subprocess.Popen([*command, *options], cwd=REPOSITORY, stdout=log, stderr=log)

    def log_text(self) -> str:
        """What all of them have written."""
        return self._log.read_text(errors="replace")

    def kill_one(self) -> None:
        """End the one that was started first, at once."""
        process = self.processes.pop(next(iter(self.processes)))
        process.kill()
        process.wait()

    def kill(self) -> None:
        """End all of them at once."""
        for process in self.processes.values():
            process.kill()
            process.wait()
