"""Kafka's own command-line tools, from a folder of jars: that of `make test-java`, or of a Kafka that tests start."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.support.broker import BrokerProcess
from tests.support.cluster import BrokerCluster
from tests.support.kafka import KAFKA_JARS
from tests.support.mixed_cluster import MixedCluster

JARS: Final = os.environ.get("CAUDAL_KAFKA_TOOLS", KAFKA_JARS)
RUN_TIMEOUT_S: Final = 120
_JAVA: Final = ("java", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{JARS}/*")

needs_tools: Final = [
    pytest.mark.skipif(JARS is None, reason="CAUDAL_KAFKA_TOOLS names no folder of jars: see `make test-java`"),
    pytest.mark.skipif(shutil.which("java") is None, reason="the command java is not installed"),
    pytest.mark.timeout(6 * RUN_TIMEOUT_S),
    pytest.mark.xdist_group("java"),
]
"""Marks of a module that runs the tools."""


def run_java(main: str, *arguments: str) -> str:
    """Run a tool to its end; returns what it wrote, and fails when the tool did."""
    process = subprocess.run(
        [*_JAVA, main, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return "".join(line for line in process.stdout.splitlines(keepends=True) if not line.startswith("SLF4J:"))


def run_tool(broker: BrokerProcess | BrokerCluster | MixedCluster, tool: str, *arguments: str) -> str:
    """Run one of the tools that take the address of the cluster as their last option."""
    return run_java(f"org.apache.kafka.tools.{tool}", *arguments, "--bootstrap-server", broker.bootstrap)


@contextmanager
def running_tool(tool: str, *arguments: str) -> Iterator[Iterator[str]]:
    """A tool that never ends: its lines, until the block is over."""
    command = [*_JAVA, f"org.apache.kafka.tools.{tool}", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            yield iter(process.stdout)
        finally:
            process.kill()
