"""Programs that run Kafka's own Java clients: compiled against one version of them, and run with it.

They need Java and the clients' jars, one folder per version: `make test-java` fetches both.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.service import REPOSITORY

JARS: Final = os.environ.get("CAUDAL_JAVA_CLIENTS")
RUN_TIMEOUT_S: Final = 300
_SOURCES: Final = REPOSITORY / "tests" / "support" / "java"

needs_clients: Final = [
    pytest.mark.skipif(JARS is None, reason="CAUDAL_JAVA_CLIENTS names no folder of jars: see `make test-java`"),
    pytest.mark.skipif(shutil.which("javac") is None, reason="the command javac is not installed"),
    pytest.mark.timeout(RUN_TIMEOUT_S + 60),
    pytest.mark.xdist_group("java"),
]
"""Marks of a module that runs such programs."""


def failed_checks(version: str, checks: str, *, folder: Path, bootstrap: str, options: tuple[str, ...] = ()) -> str:
    """Run all checks of one class with the clients of a version; everything it wrote if one of them failed."""
    class_path = f"{folder}:{JARS}/{version}/*"
    sources = [str(_SOURCES / f"{name}.java") for name in ("Judge", checks)]
    compiled = _run("javac", "-nowarn", "-cp", class_path, "-sourcepath", str(_SOURCES), "-d", str(folder), *sources)
    assert (folder / f"{checks}.class").exists(), compiled
    said = _run("java", "-XX:TieredStopAtLevel=1", *options, "-cp", class_path, "Judge", bootstrap, checks)
    verdicts = [line for line in said.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert verdicts, said
    return said if any(verdict.startswith("FAIL") for verdict in verdicts) else ""


def _run(*command: str) -> str:
    """What a command wrote, whether it succeeded or not."""
    process = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    return process.stdout
