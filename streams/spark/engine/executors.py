"""Executors on other machines: sends them our packages, and checks that they can run them."""

import logging
import re
import sys
import threading
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streams.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PACKAGES: Final = ("core_broker", "schema_registry", "connect", "streams", "connectors")
LIBRARIES: Final = {
    "confluent_kafka": "confluent-kafka",
    "fastavro": "fastavro",
    "google.protobuf": "protobuf",
    "httpx2": "httpx2",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "pyruhvro": "pyruhvro",
}
"""What tasks import, by module, and the name under which it is installed."""
_DISCOVERY: Final = Path("streams") / "spark" / "discovery"
_GROUP: Final = "caudal-check-of-executors"
_SUFFIXES: Final = {".py", ".json", ".proto", ".avsc", ".typed"}
_PROBLEMS_MAX: Final = 10

Finding = tuple[str, str, tuple[str, ...]]
"""A host, its Python version, and the libraries that it lacks."""


def zip_packages(root: Path, target: Path) -> Path:
    """A zip of our packages; the data sources that every session discovers are at its top."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        folders = [*((root / package, root) for package in PACKAGES), (root / _DISCOVERY, root / _DISCOVERY)]
        for folder, below in folders:
            for path in sorted(folder.rglob("*")):
                if path.suffix in _SUFFIXES and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(below))
    return target


def check_executors(session: "SparkSession", *, timeout_seconds: float) -> None:
    """Run a small job; raises `EngineUnavailable` if no executor takes it, or if Python there does not fit."""
    context = session.sparkContext
    tasks = max(2 * context.defaultParallelism, 8)
    stop = threading.Timer(timeout_seconds, context.cancelJobGroup, args=[_GROUP])
    stop.daemon = True
    stop.start()
    try:
        context.setJobGroup(_GROUP, "check of the executors", interruptOnCancel=True)
        found = context.parallelize(range(tasks), tasks).mapPartitions(_findings).collect()
    except Exception as error:
        raise EngineUnavailable(_explain(error, master=str(context.master), timeout_seconds=timeout_seconds)) from error
    finally:
        stop.cancel()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type] # None clears it
    if problems := describe_problems(found):
        raise EngineUnavailable("\n".join(problems))


def executors_missing(session: "SparkSession") -> bool:
    """Whether work waits and there is no executor for it; without work, a cluster may well have none."""
    context = session.sparkContext
    if not context.statusTracker().getActiveJobsIds():
        return False
    with_driver = context._jsc.sc().statusTracker().getExecutorInfos()  # noqa: SLF001 - Python's tracker lacks it
    return len(with_driver) <= 1


def no_executor_message(master: str, seconds: float) -> str:
    """What to check when a cluster takes no work."""
    return (
        f"No executor of {master} took work within {seconds:.0f} s: check that it has workers with free cores and "
        "memory (spark.executor.memory, spark.cores.max), and that they can reach this machine (spark.driver.host)."
    )


def describe_problems(findings: Iterable[Finding]) -> list[str]:
    """What to install on which host."""
    problems = []
    for host, version, missing in sorted(set(findings)):
        if missing:
            names = " ".join(LIBRARIES.get(module, module) for module in missing)
            problems.append(f"Executors on {host} (Python {version}) lack libraries; run there:  pip install {names}")
    return problems[:_PROBLEMS_MAX]


def _findings(_: Iterable[int]) -> Iterator[Finding]:
    """Runs on an executor."""
    import importlib.util
    import platform
    import socket

    missing = []
    for module in LIBRARIES:
        try:
            found = importlib.util.find_spec(module) is not None
        except ImportError:
            found = False
        if not found:
            missing.append(module)
    yield socket.gethostname(), platform.python_version(), tuple(missing)


def _explain(error: Exception, *, master: str, timeout_seconds: float) -> str:
    text = str(error)
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if "PYTHON_VERSION_MISMATCH" in text or "Python in worker has different version" in text:
        return (
            f"The engine runs Python {ours}, and executors of {master} another version: install Python {ours} there "
            "and set spark.pyspark.python to its path."
        )
    if "cancelled" in text.lower() or "canceled" in text.lower():
        return no_executor_message(master, timeout_seconds)
    if found := re.search(r'Cannot run program "([^"]*)"', text):
        return f"Executors of {master} have no Python at {found[1]}: set spark.pyspark.python to its path."
    return f"Executors of {master} cannot run Python: {text[:1000]}"
