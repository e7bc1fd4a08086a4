"""Kafka's own Java clients, old and new, as judges. The checks themselves are written in `tests/support/java`.

They need Java and the clients' jars, one folder per version: `make test-java` fetches both and runs this module.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker import BrokerProcess
from tests.support.service import REPOSITORY

SOURCES = REPOSITORY / "tests" / "support" / "java"
JARS = os.environ.get("CAUDAL_JAVA_CLIENTS")
CHECKS = {
    "2.8.2": ("BasicChecks",),
    "3.9.1": ("BasicChecks", "AdminChecks"),
    "4.3.0": ("BasicChecks", "AdminChecks", "LatestChecks"),
}
RUN_TIMEOUT_S = 300

pytestmark = [
    pytest.mark.skipif(JARS is None, reason="CAUDAL_JAVA_CLIENTS names no folder of jars: see `make test-java`"),
    pytest.mark.skipif(shutil.which("javac") is None, reason="the command javac is not installed"),
    pytest.mark.timeout(RUN_TIMEOUT_S + 60),
    pytest.mark.xdist_group("java"),
]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that no other test uses, with two folders: the checks change its settings and move its partitions."""
    directory = tmp_path_factory.mktemp("java")
    with BrokerProcess(directory, settings={"log.dirs": f"{directory / 'a'},{directory / 'b'}"}) as broker:
        yield broker


def run(*command: str) -> str:
    """Run a command to its end and return what it wrote, whether it succeeded or not."""
    process = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    return process.stdout


@pytest.mark.parametrize(
    "version,checks", [(version, checks) for version, classes in CHECKS.items() for checks in classes]
)
def test_every_check_of_the_java_client_passes(
    own_broker: BrokerProcess, tmp_path: Path, version: str, checks: str
) -> None:
    class_path = f"{tmp_path}:{JARS}/{version}/*"
    sources = [str(SOURCES / f"{name}.java") for name in ("Judge", "Groups", *CHECKS[version])]
    compiled = run("javac", "-nowarn", "-cp", class_path, "-d", str(tmp_path), *sources)
    assert (tmp_path / f"{checks}.class").exists(), compiled
    told = run("java", "-XX:TieredStopAtLevel=1", "-cp", class_path, "Judge", own_broker.bootstrap, checks)
    verdicts = [line for line in told.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert verdicts, told
    assert not [verdict for verdict in verdicts if verdict.startswith("FAIL")], told
