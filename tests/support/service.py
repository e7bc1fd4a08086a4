"""A service as its users meet it: a process of its own, started on a free port, killed and started again."""

import os
import re
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, Self

REPOSITORY: Final = Path(__file__).parents[2]
READY_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 60.0


def service_environment() -> dict[str, str]:
    """The environment of a service: without PYTHONDONTWRITEBYTECODE, or each start would compile everything, and
    without variables of the tests that look like settings of the broker."""
    ours = ("PYTHONDONTWRITEBYTECODE", "KAFKA_JARS", "KAFKA_NODES", "CAUDAL_NODES")
    return {key: value for key, value in os.environ.items() if key not in ours}


class ServiceFailed(RuntimeError):
    """The process ended or did not become ready; the message ends with the tail of its log."""


class ServiceProcess(ABC):
    """One process of a service; its output is kept in files in its directory."""

    ready: ClassVar[re.Pattern[bytes]]
    """Finds the address (ending in the port) in what the process says when it is ready."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.settings = dict(settings or {})
        self.address = ""
        self.ready_after_s = 0.0
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def _command(self) -> list[str]:
        """What to run."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the running service."""
        assert self._process is not None, "the service is not running"
        return self._process.pid

    @property
    def port(self) -> int:
        """Port the service listens on, the same over restarts."""
        return self._port

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the process and wait until it says that it is ready."""
        started = time.monotonic()
        said = self.directory / "stdout.log"
        before = said.stat().st_size if said.exists() else 0
        self.launch()
        self.address = self._wait_until_ready(said, before, started + READY_TIMEOUT_S)
        self.ready_after_s = time.monotonic() - started
        self._port = int(self.address.rpartition(":")[2])
        return self

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        assert not self.is_running, "the service is already running"
        with (
            (self.directory / "stdout.log").open("ab") as stdout,
            (self.directory / "stderr.log").open("ab") as stderr,
        ):
            command = self._command()
            self._process = subprocess.Popen(
                command, stdout=stdout, stderr=stderr, cwd=REPOSITORY, env=service_environment()
            )

    def kill(self) -> None:
        """End the process at once, as a power cut of the process would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the process to end and wait for it (SIGTERM); a process that lingers is killed, and that is a failure."""
        self._end(signal.SIGTERM)

    def restart(self, *, settings: Mapping[str, str] | None = None, kill: bool = False) -> Self:
        """End the process and start it on the same data and port."""
        self.kill() if kill else self.stop()
        self.settings.update(settings or {})
        return self.start()

    def log_text(self) -> str:
        """Everything the process has written, on both outputs."""
        names = ("stdout.log", "stderr.log")
        return "".join((self.directory / name).read_text(errors="replace") for name in names)

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of what the process wrote to stderr."""
        path = self.directory / "stderr.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def _wait_until_ready(self, said: Path, position: int, deadline: float) -> str:
        while time.monotonic() < deadline:
            with said.open("rb") as file:
                file.seek(position)
                if found := self.ready.search(file.read()):
                    return found[1].decode()
            if not self.is_running:
                raise ServiceFailed(f"the service ended before it was ready\n{self.log_tail()}")
            time.sleep(0.005)
        self.kill()
        raise ServiceFailed(f"the service was not ready after {READY_TIMEOUT_S} s\n{self.log_tail()}")

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            raise ServiceFailed(f"the service did not stop in {STOP_TIMEOUT_S} s\n{self.log_tail()}") from error
        finally:
            self._process = None


def run_module(module: str, settings: Mapping[str, str], *arguments: str) -> list[str]:
    """The command that starts a service's package with settings, after other arguments."""
    pairs = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", module, *arguments, *pairs]
