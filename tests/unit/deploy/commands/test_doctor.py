import pytest

from deploy.cli import main
from deploy.commands.doctor import _print, summary
from deploy.doctor.checks import CHECKS
from deploy.doctor.finding import ok, problem, warning


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--help"]) == 0
    text = capsys.readouterr().out
    assert "caudal doctor -o json" in text
    assert "exit code" in text


def test_the_last_line_counts_problems_and_warnings() -> None:
    well, doubtful, broken = ok("A", "b"), warning("A", "b"), problem("A", "b", "repair it")
    assert summary([well]) == "[green]✓[/] no problems"
    assert "no problems, 1 warning" in summary([well, doubtful])
    assert "2 problems, and 1 warning" in summary([broken, doubtful, broken])


def test_findings_are_printed_under_their_group_with_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    findings = [ok("A", "as it should be"), problem("B", "broken [beyond] repair", "repair it:  caudal up")]
    assert _print([(CHECKS[0], findings)]) == findings
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        "Installation",
        "✓ A  as it should be",
        "✗ B  broken [beyond] repair",
        "→ repair it:  caudal up",
        "✗ 1 problem: the lines with → say what to do",
    ]
