"""Carries the checks out, all at the same time; none of them can hang or break the others."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final

from deploy.doctor.checks import Check
from deploy.doctor.finding import Finding, problem
from deploy.doctor.surroundings import Surroundings

_ANSWERS_MAX: Final = 4
"""How many answers a check waits for, one after the other, at most."""


def carried_out(checks: Iterable[Check], surroundings: Surroundings) -> Iterator[tuple[Check, list[Finding]]]:
    """Each check with what it has found, in their order; what takes too long is told as found."""
    for looking in [_Looking(check, surroundings) for check in checks]:
        yield looking.check, looking.outcome()


class _Looking:
    """One check on a thread of its own. The thread ends with the process, should the check never end."""

    def __init__(self, check: Check, surroundings: Surroundings) -> None:
        self.check = check
        self._found: list[Finding] = []
        self._seconds = check.seconds_max + _ANSWERS_MAX * surroundings.answer_seconds
        self._ends_at = time.monotonic() + self._seconds
        self._thread = threading.Thread(target=self._look, args=(surroundings,), name=check.name, daemon=True)
        self._thread.start()

    def outcome(self) -> list[Finding]:
        """What was found, at the latest when the check's time is up."""
        self._thread.join(max(0.0, self._ends_at - time.monotonic()))
        found = list(self._found)
        if self._thread.is_alive():
            found.append(problem(self.check.name, f"no answer within {self._seconds:g} s"))
        return found

    def _look(self, surroundings: Surroundings) -> None:
        try:
            for finding in self.check.look(surroundings):
                self._found.append(finding)  # one by one: what was found before a failure counts
        except Exception as error:  # noqa: BLE001 - whatever keeps a check from looking is what it has found
            told = str(error).partition("\n")[0] or "without a reason"
            self._found.append(problem(self.check.name, f"this could not be looked at: {type(error).__name__}: {told}"))
