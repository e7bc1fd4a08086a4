"""An engine for tests: in a folder of its own, small, on any free port, with jobs and operations that tests need."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import psutil

from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from tests.support.admin import eventually

_SMALL: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.caudal.connect.port": "0",
    "spark.caudal.idle.timeout.ms": "30000",
    "spark.caudal.start.timeout.ms": "600000",
    "spark.sql.shuffle.partitions": "2",
}
_PATIENCE_S: Final = 240.0
T = TypeVar("T")
QUICK: Final = {"spark.sql.catalogImplementation": "in-memory", "spark.caudal.connect.port": "-1"}
"""What makes an engine start sooner that needs neither tables nor notebooks."""
_PLUGINS: Final = """[caudal.spark.jobs]
ticking = tests.support.spark_engine_jobs:Ticking

[caudal.spark.operations]
active-jobs = tests.support.spark_engine_jobs:active_jobs
busy-worker = tests.support.spark_engine_jobs:busy_worker
fail-in-worker = tests.support.spark_engine_jobs:fail_in_worker
"""


def patiently(ask: Callable[[], T], accept: Callable[[T], bool] = bool) -> T:
    """Ask again until the answer is accepted; Spark on a machine with much else to do takes its time."""
    return eventually(ask, accept, timeout_s=_PATIENCE_S)


def engine_settings(directory: Path, more: Mapping[str, str] | None = None) -> SparkSettings:
    """Settings of a small engine in a folder."""
    return SparkSettings.parse({**_SMALL, "spark.caudal.data.dir": str(directory), **(more or {})})


@contextmanager
def running_engine(directory: Path, more: Mapping[str, str] | None = None) -> Iterator[Engine]:
    """A connection to an engine that is started for it, and that is gone afterwards."""
    settings = engine_settings(directory, more)
    try:
        with Engine.connect(settings) as engine:
            yield engine
    finally:
        end_engine(settings)


def end_engine(settings: SparkSettings) -> None:
    """Kill the engine of a folder, if there is one, and everything that belongs to it."""
    engine = engine_process(settings)
    if engine is None:
        return
    family = family_of(engine)
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=60)


def engine_process(settings: SparkSettings) -> psutil.Process | None:
    """The engine of a folder, as its lock file names it; None when there is none."""
    with suppress(FileNotFoundError, ValueError, IndexError, psutil.NoSuchProcess):
        process = psutil.Process(int((settings.data_dir / "engine.lock").read_text().split()[0]))
        if any("streams.spark.engine" in word or word == "engine" for word in process.cmdline()):
            return process
    return None


def family_of(process: psutil.Process) -> list[psutil.Process]:
    """A process and everything that it has started."""
    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def python_workers(family: list[psutil.Process]) -> list[psutil.Process]:
    """Those of a family that run Python code for Spark."""
    return [process for process in family if is_alive(process) and "pyspark" in " ".join(process.cmdline())]


def wait_until_gone(family: list[psutil.Process]) -> None:
    """Wait until none of the processes is left."""
    patiently(lambda: [process for process in family if is_alive(process)], lambda left: not left)


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; what waits for its parent to notice its death does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def java_of(engine: Engine) -> psutil.Process:
    """The engine's Java."""
    family = family_of(psutil.Process(engine.info.pid))
    return next(process for process in family if process.name().startswith("java"))


@contextmanager
def plugins_for_tests(directory: Path) -> Iterator[None]:
    """Engines that are started inside know the jobs and operations of tests, as if a package had brought them."""
    package = directory / "engine_test_plugins-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: engine-test-plugins\nVersion: 1\n")
    (package / "entry_points.txt").write_text(_PLUGINS)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(directory), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
