"""`caudal quickstart` as a newcomer meets it: with Spark and without, on a platform that runs and on one of its own."""

import os
import pty
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from deploy.launcher import state
from tests.support.platform import SMALL_SPARK, PlatformProcess, caudal, run_caudal, wait_until_ended
from tests.support.service import REPOSITORY, service_environment
from tests.support.spark_java import needs_java

pytestmark = pytest.mark.timeout(900)

_TIMEOUT_S: Final = 600.0


class Toured(NamedTuple):
    """What a tour has said, and how it ended."""

    code: int
    said: str
    complaints: str

    def numbers(self) -> list[int]:
        """The numbers of the orders that are rows of SQLite."""
        table = self.said.partition("rows of SQLite:")[2].partition("is not among them")[0]
        return [int(number) for number in re.findall(r"^ +(\d{4,}) ", table, re.MULTILINE)]


def _toured(*options: str, environment: Mapping[str, str] | None = None) -> Toured:
    done = subprocess.run(
        caudal("quickstart", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        cwd=REPOSITORY,
        env={**service_environment(), **(environment or {})},
    )
    return Toured(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    """A platform that somebody has started before."""
    with PlatformProcess(tmp_path_factory.mktemp("toured") / "data", settings=SMALL_SPARK) as process:
        yield process


@pytest.fixture(scope="module")
def first(platform: PlatformProcess) -> Toured:
    """The first tour on it."""
    return _toured("--data", str(platform.data))


@needs_java
def test_every_step_is_done_and_checked(first: Toured) -> None:
    assert first.code == 0, first.said + first.complaints
    assert "all 10 steps done and checked" in first.said
    assert [number for number in range(1, 11) if f"\n{number}/10  " not in first.said] == []


@needs_java
def test_the_tour_that_readers_are_shown_is_the_one_that_is_printed(first: Toured, platform: PlatformProcess) -> None:
    """Step by step, but for ports, times, folders, and what comes in no certain order."""
    shown = (REPOSITORY / "deploy" / "quickstart" / "TOUR.md").read_text()
    printed = first.said.replace(str(platform.data), "/tmp/caudal-quickstart")
    assert _steps(printed) == _steps(shown)


def _steps(text: str) -> list[list[str]]:
    """The lines of each step, sorted, without what differs from one tour to the next."""
    text = re.sub(r" --(bootstrap|registry|connect|server) \S+", "", text)
    text = re.sub(r"(localhost|127\.0\.0\.1):\d+", r"\1", text)
    text = re.sub(r"\S*bin/caudal ", "caudal ", text)
    text = re.sub(r"(was ready after [\d.]+ s|runs)(?=, and 6 orders)", "runs", text)
    text = text.replace("UNASSIGNED", "RUNNING")
    text = re.sub(r"\b0-[01]\b", "0-N", text)
    steps = text[text.index("1/10") : text.index("all 10 steps")].split("/10  ")
    return [
        sorted(" ".join(line.split()) for line in step.splitlines() if "Spark starts now" not in line) for step in steps
    ]


@needs_java
def test_the_tables_of_sql_and_spark_are_shown(first: Toured) -> None:
    assert len(first.numbers()) == 5
    spark = first.said.partition("rows of its table:")[2].partition("6/10")[0]
    assert re.search(r"Ana +canoe +PT +card +64900", spark)
    assert re.search(r"Freyja +raft +IS", spark)


@needs_java
def test_dead_letters_are_shown_with_their_headers(first: Toured) -> None:
    assert "VALUE_CONVERTER" in first.said
    assert re.search(r"__connect\.errors\.exception\.message +.*does not deliver to this country", first.said)


@needs_java
def test_the_refused_schema_is_told_with_the_reason(first: Toured) -> None:
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in first.said
    assert "the same field with a default may follow" in first.said


@needs_java
def test_the_redriven_order_is_in_the_table(first: Toured) -> None:
    assert "each letter is sent once" in first.said


@needs_java
def test_nothing_that_is_shown_is_coloured_in_a_pipe(first: Toured) -> None:
    assert "\x1b" not in first.said + first.complaints


@needs_java
def test_a_platform_that_ran_before_runs_afterwards(first: Toured, platform: PlatformProcess) -> None:
    assert first.code == 0, first.said + first.complaints
    assert platform.state.is_ready
    assert f"caudal down --data {platform.data}" in first.said


@needs_java
def test_commands_that_are_shown_can_be_typed(first: Toured) -> None:
    """As they stand, in a shell: the tour has done the same, and says so."""
    commands = [line.strip().removeprefix("$ ") for line in first.said.splitlines() if line.strip().startswith("$ ")]
    wanted = [
        word for word in commands if " dlq list " in word or " schema check " in word or " connector create " in word
    ]
    failed = {}
    for command in wanted:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd=REPOSITORY
        )
        if done.returncode:
            failed[command] = done.stdout + done.stderr

    assert len(wanted) == 6
    assert failed == {}


@needs_java
def test_a_second_tour_on_the_same_data_has_orders_of_its_own(first: Toured, platform: PlatformProcess) -> None:
    second = _toured("--data", str(platform.data))

    assert second.code == 0, second.said + second.complaints
    assert "all 10 steps done and checked" in second.said
    assert min(second.numbers()) > max(first.numbers())


def test_without_java_the_tour_leaves_spark_out_and_its_platform_and_data_are_gone(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(tmp_path / "no-java"), "TMPDIR": str(tmp_path)}
    toured = _toured("--exit", "--ports", "any", environment=environment)

    assert toured.code == 0, toured.said + toured.complaints
    assert "7 of 10 steps done and checked" in toured.said
    assert "Spark was left out" in toured.said
    assert "JAVA_HOME" in toured.said
    assert list(tmp_path.glob("caudal-quickstart-*")) == []


def test_on_a_terminal_the_platform_stays_and_one_reads_how_to_stop_it(tmp_path: Path) -> None:
    try:
        ours, terminal = pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine has no pseudo-terminals: {error}")
    data = tmp_path / "data"
    try:
        done = subprocess.run(
            caudal("quickstart", "--data", str(data), "--ports", "any", "--no-spark"),
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            cwd=REPOSITORY,
            env={key: value for key, value in service_environment().items() if key != "ONCE"},
        )
        found = state.read(data)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"caudal down --data {data}" in done.stdout
        assert found is not None
        assert found.is_ready
        pids = [found.pid, *(service.pid for service in found.services.values() if service.pid)]
    finally:
        stopped = run_caudal("down", "--data", str(data))
        for descriptor in (ours, terminal):
            with suppress(OSError):
                os.close(descriptor)
    assert stopped.returncode == 0, stopped.stderr
    wait_until_ended(pids)


def test_on_a_cluster_the_tour_kills_a_broker_and_loses_nothing() -> None:
    toured = _toured("--exit", "--no-spark", "--brokers", "3", "--ports", "any")
    assert toured.code == 0, toured.said + toured.complaints
    assert "8 of 11 steps done and checked" in toured.said
    assert re.search(r"broker-\d led the orders and was killed; order \d+ was acknowledged", toured.said)
