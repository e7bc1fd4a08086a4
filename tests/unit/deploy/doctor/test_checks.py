import threading
from collections.abc import Iterator
from dataclasses import replace

from deploy.doctor.checks import CHECKS, Check, as_json, run_checks
from deploy.doctor.finding import Context, Finding, Level, ok, problem


def _well(_: Context) -> Iterator[Finding]:
    yield ok("Well", "as it should be")


def _broken(_: Context) -> Iterator[Finding]:
    yield ok("Broken", "the first half")
    raise RuntimeError("no such thing\nwith details")


def test_check_that_raises_is_itself_a_finding_and_keeps_what_it_found_before(context: Context) -> None:
    checks = [Check(group="Some", name="Broken", look=_broken), Check(group="Some", name="Well", look=_well)]
    (_, broken), (_, well) = run_checks(checks, context)
    assert [finding.level for finding in broken] == [Level.OK, Level.PROBLEM]
    assert broken[1].found == "the check failed: RuntimeError: no such thing"
    assert [finding.level for finding in well] == [Level.OK]


def test_check_that_hangs_is_itself_a_finding_and_holds_up_no_other(context: Context) -> None:
    released = threading.Event()

    def hangs(_: Context) -> Iterator[Finding]:
        yield ok("Hangs", "the first half")
        released.wait(60)
        yield ok("Hangs", "the second half")

    checks = [
        Check(group="Some", name="Hangs", look=hangs, seconds_max=0.5),
        Check(group="Some", name="Well", look=_well, seconds_max=60),
    ]
    try:
        (_, hanging), (_, well) = run_checks(checks, replace(context, answer_seconds=0.01))
    finally:
        released.set()
    assert [finding.level for finding in hanging] == [Level.OK, Level.PROBLEM]
    assert "no answer within" in hanging[1].found
    assert [finding.level for finding in well] == [Level.OK]


def test_json_has_every_finding_and_how_many_of_each_level_there_are() -> None:
    findings: list[Finding] = [ok("A", "as it should be"), problem("B", "broken", "repair it")]
    written = as_json([(CHECKS[0], findings)])
    assert written["counts"] == {"ok": 1, "note": 0, "warning": 0, "problem": 1}
    assert written["findings"][1] == {
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
