import threading
from collections.abc import Iterator
from dataclasses import replace

from deploy.doctor.checks import Check
from deploy.doctor.finding import Finding, Level, ok
from deploy.doctor.running import carried_out
from deploy.doctor.surroundings import Surroundings


def _well(_: Surroundings) -> Iterator[Finding]:
    yield ok("Well", "as it should be")


def _broken(_: Surroundings) -> Iterator[Finding]:
    yield ok("Broken", "the first half")
    raise RuntimeError("no such thing\nwith details")


def test_check_that_raises_is_itself_a_finding_and_keeps_what_it_found_before(surroundings: Surroundings) -> None:
    checks = [Check(group="Some", name="Broken", look=_broken), Check(group="Some", name="Well", look=_well)]
    (_, broken), (_, well) = carried_out(checks, surroundings)
    assert [finding.level for finding in broken] == [Level.OK, Level.PROBLEM]
    assert broken[1].found == "this could not be looked at: RuntimeError: no such thing"
    assert [finding.level for finding in well] == [Level.OK]


def test_check_that_hangs_is_itself_a_finding_and_holds_up_nobody(surroundings: Surroundings) -> None:
    released = threading.Event()

    def hangs(_: Surroundings) -> Iterator[Finding]:
        yield ok("Hangs", "the first half")
        released.wait(60)
        yield ok("Hangs", "the second half")

    checks = [
        Check(group="Some", name="Hangs", look=hangs, seconds_max=0.5),
        Check(group="Some", name="Well", look=_well, seconds_max=60),
    ]
    try:
        (_, hanging), (_, well) = carried_out(checks, replace(surroundings, answer_seconds=0.01))
    finally:
        released.set()
    assert [finding.level for finding in hanging] == [Level.OK, Level.PROBLEM]
    assert "no answer within" in hanging[1].found
    assert [finding.level for finding in well] == [Level.OK]
