"""A broker as its users meet it: a process of its own, started on a free port, killed and started again."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

REPOSITORY: Final = Path(__file__).parents[2]
READY_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
_READY: Final = re.compile(rb"ready:?.*?PLAINTEXT://([\w.\[\]:-]+:\d+)")

FAST_SETTINGS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "0",
    "metrics.listener": "",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""Settings that make rebalances, retention and compaction happen at the pace of a test."""


def _environment() -> dict[str, str]:
    """Ours, but bytecode is kept as it is for everybody who starts a broker, or each start would compile it all."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


class BrokerFailed(RuntimeError):
    """The process ended or did not become ready; the message ends with the tail of its log."""


class BrokerProcess:
    """One broker process with its own data directory; its output is kept in files beside the data."""

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.settings = {**FAST_SETTINGS, **(settings or {})}
        self.bootstrap = ""
        self.ready_after_s = 0.0
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def port(self) -> int:
        """Port the broker listens on, the same over restarts."""
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
        self.bootstrap = self._wait_until_ready(said, before, started + READY_TIMEOUT_S)
        self.ready_after_s = time.monotonic() - started
        self._port = int(self.bootstrap.rpartition(":")[2])
        return self

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        assert not self.is_running, "the broker is already running"
        with (
            (self.directory / "stdout.log").open("ab") as stdout,
            (self.directory / "stderr.log").open("ab") as stderr,
        ):
            command = self._command()
            self._process = subprocess.Popen(command, stdout=stdout, stderr=stderr, cwd=REPOSITORY, env=_environment())

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

    def _command(self) -> list[str]:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(self.data),
            **self.settings,
        }
        pairs = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return [sys.executable, "-m", "core_broker", *pairs]

    def _wait_until_ready(self, said: Path, position: int, deadline: float) -> str:
        while time.monotonic() < deadline:
            with said.open("rb") as file:
                file.seek(position)
                if found := _READY.search(file.read()):
                    return found[1].decode()
            if not self.is_running:
                raise BrokerFailed(f"the broker ended before it was ready\n{self.log_tail()}")
            time.sleep(0.005)
        self.kill()
        raise BrokerFailed(f"the broker was not ready after {READY_TIMEOUT_S} s\n{self.log_tail()}")

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
            raise BrokerFailed(f"the broker did not stop in {STOP_TIMEOUT_S} s\n{self.log_tail()}") from error
        finally:
            self._process = None
