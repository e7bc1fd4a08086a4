"""Clients of ksqlDB as judges: one of Python, and Vert.x, on which its Java client stands.

That client itself is in a repository of its own: its requests are made here as it makes them. `make test-java` fetches
Vert.x.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.service import REPOSITORY
from tests.support.streams_process import StreamsProcess

VERTX: Final = os.environ.get("CAUDAL_VERTX")
_RUN_TIMEOUT_S: Final = 500

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("ksqldb"),
]


@pytest.fixture(scope="module")
def streams(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StreamsProcess]:
    folder = tmp_path_factory.mktemp("streams")
    with StreamsProcess(folder, bootstrap=broker.bootstrap, registry=registry.url) as process:
        yield process


@pytest.mark.skipif(VERTX is None, reason="CAUDAL_VERTX names no folder of jars: see `make test-java`")
@pytest.mark.skipif(shutil.which("javac") is None, reason="the command javac is not installed")
def test_requests_of_the_java_client(streams: StreamsProcess, tmp_path: Path) -> None:
    source = REPOSITORY / "tests" / "support" / "java" / "SqlChecks.java"
    classes = f"{tmp_path}:{VERTX}/*"
    compiled = _run("javac", "-nowarn", "-cp", classes, "-d", str(tmp_path), str(source))
    assert (tmp_path / "SqlChecks.class").exists(), compiled
    said = _run("java", "-XX:TieredStopAtLevel=1", "-cp", classes, "SqlChecks", streams.url)
    verdicts = [line.partition(" ")[0] for line in said.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert verdicts == ["PASS"] * 8, said


def _run(*command: str) -> str:
    """What a command wrote, whether it succeeded or not."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_RUN_TIMEOUT_S,
        check=False,
        cwd=REPOSITORY,
    )
    return done.stdout


@pytest.mark.skipif(find_spec("ksqldb") is None, reason="the package ksqldb is not installed")
def test_ksqldb_of_python(streams: StreamsProcess) -> None:
    found = json.loads(_run(sys.executable, "-m", "tests.support.ksqldb_user", streams.url))
    assert found["created"] == "SUCCESS"
    assert found["acks"] == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert "ksql.service.id" in found["properties"]
    for header, *rows in (found["pulled"], found["pushed"]):
        assert (header["columnNames"], rows) == (["ID", "N"], [["a", 1], ["b", 2]])
