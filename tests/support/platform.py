"""The whole platform as its users meet it: `caudal up` in a folder of its own, on free ports."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from deploy.launcher import state
from deploy.launcher.state import PlatformState, ServiceState
from tests.support.admin import eventually
from tests.support.service import ServiceFailed, service_environment

PATIENCE_S: Final = 90.0
SMALL_SPARK: Final = (
    "connect:spark.master=local[2]",
    "connect:spark.driver.memory=700m",
    "connect:spark.sql.shuffle.partitions=2",
)
"""Settings of a Spark that leaves room for others."""


class PlatformProcess:
    """One launcher and its services; whatever is left of them ends with the block."""

    def __init__(self, data: Path, *options: str, settings: Sequence[str] = ()) -> None:
        self.data = data
        self.output = data.with_name(f"{data.name}.out")
        self.options = [*options, *(word for setting in settings for word in ("--set", setting))]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.tails())
        self.stop()

    @property
    def pid(self) -> int:
        """The launcher."""
        assert self._process is not None, "the platform is not running"
        return self._process.pid

    @property
    def state(self) -> PlatformState:
        """How it fares."""
        found = state.read(self.data)
        assert found is not None, f"no platform runs in {self.data}\n{self.tails()}"
        return found

    @property
    def bootstrap(self) -> str:
        """Where Kafka clients connect to."""
        return self.state.bootstrap or ""

    def service(self, name: str) -> ServiceState:
        """How one service fares."""
        return self.state.services[name]

    def url(self, name: str) -> str:
        """Where an HTTP service is."""
        return self.service(name).endpoint

    def start(self) -> Self:
        """Start it, and wait until everything is ready."""
        self.launch()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def launch(self) -> None:
        """Start it, and do not wait."""
        assert self._process is None or self._process.poll() is not None, "the platform is already running"
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=service_environment()
            )

    def command(self) -> list[str]:
        """What to run."""
        return caudal("up", "--data", str(self.data), "--ports", "any", *self.options)

    def wait_until_ready(self) -> None:
        """Wait until everything is ready, for the first time or again."""

        def is_ready() -> bool:
            if self._process is not None and self._process.poll() is not None:
                raise ServiceFailed(f"the platform ended before it was ready\n{self.tails()}")
            found = state.read(self.data)
            return found is not None and found.is_ready

        eventually(is_ready, timeout_s=PATIENCE_S)

    def wait_until_restarted(self, name: str, *, before: ServiceState) -> ServiceState:
        """Wait until a service that has died is ready again, in another process."""
        eventually(
            lambda: self.service(name),
            lambda now: now.state == "ready" and now.pid != before.pid and now.restarts > before.restarts,
            timeout_s=PATIENCE_S,
        )
        return self.service(name)

    def wait(self) -> int:
        """Wait for the end of the launcher; its exit code."""
        assert self._process is not None, "the platform is not running"
        return self._process.wait(PATIENCE_S)

    def interrupt(self) -> None:
        """Ctrl-C, as the launcher gets it."""
        assert self._process is not None, "the platform is not running"
        self._process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """Stop it in order; one that lingers is killed, and that is a failure."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ServiceFailed(f"the platform did not stop in {PATIENCE_S} s\n{self.tails()}") from error

    def kill(self) -> None:
        """End the launcher at once; its services end by themselves, Spark's engine is killed here."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if (engine := self.engine()) is not None:
            engine.kill()

    def engine(self) -> psutil.Process | None:
        """The process of Spark's engine; None when there is none now."""
        try:
            process = psutil.Process(int((self.data / "spark" / "engine.lock").read_text().split()[0]))
            is_engine = any("streams.spark.engine" in word for word in process.cmdline())
        except (FileNotFoundError, ValueError, IndexError, psutil.NoSuchProcess):
            return None
        return process if is_engine else None

    def said(self) -> str:
        """Everything that `caudal up` has shown."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def log(self, name: str) -> str:
        """The log of a service, or of the `launcher`."""
        path = self.data / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def tails(self, lines: int = 15) -> str:
        """The end of all logs, for a failure."""
        files = [self.output, *sorted((self.data / "logs").glob("*.log")), *sorted((self.data / "spark").glob("*.log"))]
        texts = {file: file.read_text(errors="replace").splitlines()[-lines:] for file in files if file.exists()}
        return "\n".join(f"--- {file.name}\n" + "\n".join(text) for file, text in texts.items())


def caudal(*words: str) -> list[str]:
    """The `caudal` command in a process of its own."""
    return [sys.executable, "-m", "deploy.cli", *words]


def run_caudal(*words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; both outputs are kept."""
    return subprocess.run(
        caudal(*words),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=service_environment(),
        cwd=cwd,
    )


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to notice."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_ended(pids: Sequence[int]) -> None:
    """Wait until all of these processes are gone."""
    eventually(lambda: [pid for pid in pids if not has_ended(pid)], lambda left: not left, timeout_s=PATIENCE_S)
