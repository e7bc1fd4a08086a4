"""The whole tour on secured platforms, with Spark and on three brokers, and what strangers get there: nothing."""

import re
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.open_ports import Port
from tests.support.platform import SMALL_SPARK, PlatformProcess, caudal
from tests.support.secret_search import forms_of
from tests.support.secure_platform import answers_without_a_name, folder_of, open_ports
from tests.support.service import REPOSITORY, service_environment
from tests.support.spark_java import needs_java

pytestmark = pytest.mark.timeout(900)

_TIMEOUT_S: Final = 600.0


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """A secured platform, on which Spark will run."""
    with PlatformProcess(tmp_path_factory.mktemp("secure") / "data", "--secure", settings=SMALL_SPARK) as process:
        yield process


@pytest.fixture(scope="module")
def toured(platform: PlatformProcess) -> str:
    """What the tour on it has said."""
    return tour("--secure", "--data", str(platform.data))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """A secured platform of three brokers."""
    with PlatformProcess(tmp_path_factory.mktemp("cluster") / "data", "--secure", "--brokers", "3") as process:
        yield process


def tour(*options: str) -> str:
    done = subprocess.run(
        caudal("quickstart", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        cwd=REPOSITORY,
        env=service_environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_ports(platform: PlatformProcess, ports: list[Port]) -> None:
    """Every address of the platform is among the ports, and none of them answers a stranger."""
    assert {port.number for port in ports} >= {service.port for service in platform.state.services.values()}
    assert answers_without_a_name(platform, ports) == []


@needs_java
def test_the_whole_tour_is_done_on_a_secured_platform(toured: str) -> None:
    assert "all 10 steps done and checked" in toured
    assert re.search(r"Freyja +raft +IS", toured)


@needs_java
def test_nothing_of_it_answers_a_stranger_and_neither_does_spark(platform: PlatformProcess, toured: str) -> None:
    ports = open_ports(platform)
    spark = platform.state.spark
    assert spark is not None
    assert spark.connect_port in {port.number for port in ports}, toured
    assert any("pyspark" in port.command for port in ports)
    check_ports(platform, ports)


@needs_java
def test_commands_that_are_shown_can_be_typed(platform: PlatformProcess, toured: str) -> None:
    commands = [line.strip().removeprefix("$ ") for line in toured.splitlines() if line.strip().startswith("$ ")]
    words = (" dlq list ", " schema check ", " connector create ", " topic create ", "payments.json")
    wanted = [command for command in commands if any(word in command for word in words)]
    assert len(wanted) >= 7
    for command in wanted:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd=REPOSITORY
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert folder_of(platform).password("admin") not in toured


@needs_java
def test_no_secret_is_in_sparks_files_or_the_files_of_the_tour(platform: PlatformProcess, toured: str) -> None:
    secrets = [file.read_text().strip() for file in (folder_of(platform).path / "passwords").iterdir()]
    forms = [form for secret in secrets for form in forms_of(secret)]
    files = [path for folder in ("logs", "spark", "quickstart") for path in (platform.data / folder).rglob("*")]
    found = [path for path in files if path.is_file() and any(form in path.read_bytes() for form in forms)]
    assert found == [], toured


def test_the_same_on_three_brokers(cluster: PlatformProcess) -> None:
    check_ports(cluster, open_ports(cluster))
    toured = tour("--secure", "--no-spark", "--data", str(cluster.data))
    assert "7 of 10 steps done and checked" in toured
