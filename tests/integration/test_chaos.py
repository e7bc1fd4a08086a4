"""Three brokers under faults lose nothing, and a broker that breaks a rule is reported; `make chaos` runs longer."""

from pathlib import Path

from tests.chaos.run import Plan, run
from tests.chaos.verdict import judge


def test_acknowledged_records_and_transactions_survive_faults(tmp_path: Path) -> None:
    plan = Plan(
        directory=tmp_path / "chaos",
        seed=2,
        seconds=30,
        faults_max=5,
        kinds=["kill", "pause", "isolate", "lose responses", "restart", "kill client"],
        rate=200,
    )
    result = run(plan, print)
    failed = [figure for figure in judge(result) if not figure.passes and not figure.is_timing]
    assert failed == [], result.report.violations
    assert result.report.acknowledged
    assert result.report.transactions["committed"]
    assert result.report.transformed


def test_a_broker_that_acknowledges_what_no_follower_has_is_reported_as_losing_records(tmp_path: Path) -> None:
    plan = Plan(
        directory=tmp_path / "chaos",
        seed=2,
        seconds=60,
        faults_max=2,
        kinds=["isolate"],
        targets=["leader"],
        rate=200,
        program=("tests.chaos.broken_broker", "high-watermark"),
        clients=("producers",),
        probes=False,
    )
    report = run(plan, print).report
    assert report.count("S1"), "nothing was lost"
