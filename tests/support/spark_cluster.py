"""A standalone Spark cluster on this machine, from Spark's package alone: one master and some workers."""

import os
import re
import signal
import subprocess
import sys
import time
import venv
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

import psutil

_START_TIMEOUT_S: Final = 240.0
_STOP_TIMEOUT_S: Final = 30.0
_REGISTERED: Final = re.compile(r"Successfully registered with master")
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"


class SparkCluster:
    """Processes of a cluster; their logs and work folders are in its directory."""

    def __init__(self, directory: Path, *, workers: int = 2, cores: int = 1, memory: str = "900m") -> None:
        self.directory = directory
        self.python = python_without_us(directory / "python")
        self._workers = workers
        self._cores = cores
        self._memory = memory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.master = ""
        """What `spark.master` must be, once it runs."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all, and wait until the workers have been taken."""
        self._launch_master("0")
        self.master = self._wait_for("master", re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:[1-9]\d*)"))[
            1
        ]
        names = [f"worker-{number}" for number in range(1, self._workers + 1)]
        for name in names:
            size = ("-c", str(self._cores), "-m", self._memory)
            place = ("--host", "127.0.0.1", "--webui-port", "0", "-d", str(self.directory / name))
            self._launch(name, _WORKER, *place, *size, self.master)
        for name in names:
            self._wait_for(name, _REGISTERED)

    def replace_master(self) -> None:
        """Kill the master, and start another one in its place that knows nothing of what runs."""
        self._processes["master"].kill()
        self._processes["master"].wait(_STOP_TIMEOUT_S)
        self._launch_master(self.master.rpartition(":")[2])

    def stop(self) -> None:
        """End all, and the executors that they started."""
        found: list[psutil.Process] = []
        for process in self._processes.values():
            with suppress(psutil.NoSuchProcess):
                parent = psutil.Process(process.pid)
                found += [parent, *parent.children(recursive=True)]
        for one in found:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(found, _STOP_TIMEOUT_S)
        for one in alive:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        for process in self._processes.values():
            process.wait(_STOP_TIMEOUT_S)
        self._processes.clear()

    def log(self, name: str) -> str:
        """What a process has written: `master`, `worker-1`, …"""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def executors(self, name: str) -> list[str]:
        """Folders of the executors that a worker has run."""
        return sorted(str(path) for path in (self.directory / name).glob("app-*/*") if path.is_dir())

    def _launch_master(self, port: str) -> None:
        self._launch("master", _MASTER, "--host", "127.0.0.1", "--port", port, "--webui-port", "0")

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        kept = ("PATH", "JAVA_HOME", "HOME", "LANG", "TMPDIR")
        environment = {key: os.environ[key] for key in kept if key in os.environ}
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # It would take a fixed port.
            "PYSPARK_PYTHON": str(self.python),
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(home / "bin" / "spark-class"), main, *arguments],
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=environment,
            )

    def _wait_for(self, name: str, sign: re.Pattern[str]) -> re.Match[str]:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while (found := sign.search(self.log(name))) is None:
            assert self._processes[name].poll() is None, f"{name} ended\n{self.log(name)[-2000:]}"
            assert time.monotonic() < deadline, f"{name} did not start in time\n{self.log(name)[-2000:]}"
            time.sleep(0.05)
        return found


def python_without_us(folder: Path) -> Path:
    """A Python as on another machine: it has what we depend on, but not our own code."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "others.pth").write_text(ours + "\n")  # Files *.pth over there are not read: nor that which names us.
    python = folder / "bin" / "python"
    command = [str(python), "-E", "-c", "import pyarrow, connect"]
    check = subprocess.run(command, capture_output=True, check=False, cwd=folder)
    assert b"No module named 'connect'" in check.stderr, check.stderr
    return python
