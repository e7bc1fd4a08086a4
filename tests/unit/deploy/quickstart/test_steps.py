import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.quickstart import steps
from deploy.quickstart.addresses import PlatformAddresses
from deploy.quickstart.steps import STEPS, Step, take
from deploy.quickstart.tour import StepFailed, Tour

UNREACHABLE = "http://127.0.0.1:1"


@pytest.fixture
def tour(tmp_path: Path) -> Tour:
    """A tour over a platform that does not answer."""
    addresses = PlatformAddresses(
        data=tmp_path,
        bootstrap="127.0.0.1:1",
        registry=UNREACHABLE,
        proxy=UNREACHABLE,
        connect=UNREACHABLE,
        streams=UNREACHABLE,
        spark_data=tmp_path / "spark",
        spark_port=1,
        logs={},
    )
    return Tour(addresses=addresses)


def _step(run: Callable[[Tour], None], *, title: str = "A step", needs_spark: bool = False) -> Step:
    return Step(title=title, says="Does it.", by_hand=lambda _: ["caudal it"], run=run, needs_spark=needs_spark)


def _fail(error: Exception) -> Callable[[Tour], None]:
    def run(_: Tour) -> None:
        raise error

    return run


def test_a_step_says_what_it_does_and_the_command_that_does_it(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    assert take(tour, [_step(lambda _: None)])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == ["1/1  A step", "Does it.", "$ caudal it"]


def test_the_tour_ends_at_the_first_step_that_fails(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    failing = _step(_fail(StepFailed("no rows", log=Path("/logs/connect.log"))), title="Rows")

    assert not take(tour, [_step(lambda _: seen.append("first")), failing, _step(lambda _: seen.append("last"))])
    output = capsys.readouterr().err
    assert seen == ["first"]
    assert "step 2, 'Rows', failed: no rows" in output
    assert "  → read its log:  /logs/connect.log\n" in output


@pytest.mark.parametrize(
    "error",
    [sqlite3.OperationalError("database is locked"), OSError("no space"), StepFailed("[red]odd[/]")],
    ids=lambda error: type(error).__name__,
)
def test_trouble_is_reported_without_a_trace(error: Exception, tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    assert not take(tour, [_step(_fail(error))])
    assert str(error) in capsys.readouterr().err


def test_a_mistake_of_ours_is_not_hidden(tour: Tour) -> None:
    with pytest.raises(ZeroDivisionError):
        take(tour, [_step(_fail(ZeroDivisionError()))])


def test_a_worker_that_does_not_answer_fails_the_step(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    (creating,) = (step for step in STEPS if step.title == "Connect topics with tables")

    assert not take(tour, [creating])
    assert f"failed: The Connect worker cannot be reached: {UNREACHABLE}" in capsys.readouterr().err


def test_without_spark_its_steps_are_left_out_with_the_reason(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    tour.spark_problem = "there is no Java\ninstall one"

    assert take(tour, [_step(_fail(StepFailed("never")), needs_spark=True)])
    assert "left out: there is no Java" in capsys.readouterr().out


def test_the_result_tells_what_was_left_out(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    steps.show_result(tour, seconds=12.3)
    assert f"all {len(STEPS) - 1} steps done and checked in 12 s" in capsys.readouterr().out
    tour.spark_problem = "there is no Java"
    steps.show_result(tour, seconds=12.3)
    assert "Spark was left out" in capsys.readouterr().out


def test_a_broker_is_killed_only_where_that_is_allowed(tour: Tour) -> None:
    assert not any(step.needs_cluster for step in steps.steps_of(tour))
    tour.may_kill_brokers = True
    assert steps.steps_of(tour) == list(STEPS)


def test_every_step_has_a_sentence() -> None:
    assert [step.title for step in STEPS if not (step.says.endswith(".") and len(step.says) < 110)] == []


def test_who_stays_reads_how_to_look_and_to_stop(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    steps.show_next(tour, stays=True)
    output = capsys.readouterr().out
    assert [word for word in (" status", " down", "sc://localhost:1", "/docs", "README.md") if word not in output] == []


def test_who_does_not_stay_reads_how_to_begin(tour: Tour, capsys: pytest.CaptureFixture[str]) -> None:
    steps.show_next(tour, stays=False)
    output = capsys.readouterr().out
    assert "caudal up" in output
    assert " down" not in output
