import pytest

from deploy.doctor.checks import CHECKS, Check
from deploy.doctor.finding import Finding, ok, problem, warning
from deploy.doctor.view import as_json, print_outcomes, summary

_CHECK: Check = CHECKS[0]


def test_last_line_tells_how_it_stands() -> None:
    well, doubtful, broken = ok("A", "b"), warning("A", "b"), problem("A", "b", "repair it")
    assert "all is well" in summary([well])
    assert "no problems, 1 warning" in summary([well, doubtful])
    assert "2 problems, and 1 warning" in summary([broken, doubtful, broken])


def test_findings_are_printed_under_their_group_with_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    findings = [ok("A", "as it should be"), problem("B", "broken [beyond] repair", "repair it:  caudal up")]
    assert print_outcomes([(_CHECK, findings)]) == findings
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        "Installation",
        "✓ A  as it should be",
        "✗ B  broken [beyond] repair",
        "→ repair it:  caudal up",
        "✗ 1 problem: the lines with → say what to do",
    ]


def test_json_has_every_finding_and_how_many_of_each_level_there_are() -> None:
    findings: list[Finding] = [ok("A", "as it should be"), problem("B", "broken", "repair it")]
    told, seen = as_json([(_CHECK, findings)], {"data": "/data"})
    assert seen == findings
    assert told["counts"] == {"ok": 1, "note": 0, "warning": 0, "problem": 1}
    assert told["findings"][1] == {
        "group": "Installation",
        "check": "Python",
        "level": "problem",
        "subject": "B",
        "found": "broken",
        "next_steps": ["repair it"],
    }


def test_every_check_has_a_name_of_its_own_and_says_what_it_looks_at() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    looks = [getattr(check.look, "func", check.look) for check in CHECKS]
    assert all(look.__doc__ and look.__doc__.strip().endswith(("?", "it.")) for look in looks)
