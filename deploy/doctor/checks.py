"""Every check, in the order in which people read them, and running them at the same time."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from deploy.doctor import data, folder, java, machine, ports, python, secrets, services, variables
from deploy.doctor.finding import Context, Finding, Level, problem
from deploy.stack import STACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is looked at."""

    group: str
    name: str
    look: Callable[[Context], Iterator[Finding]]
    seconds_max: float = 5.0
    """A check that takes longer is itself a finding; the time for answers of services comes on top."""


_INSTALLATION: Final = "Installation"
_MACHINE: Final = "Machine"
_ENVIRONMENT: Final = "Environment"
_PLATFORM: Final = "Platform"

CHECKS: Final = (
    Check(group=_INSTALLATION, name="Python", look=python.python_version),
    Check(group=_INSTALLATION, name="Packages", look=python.packages, seconds_max=25.0),
    Check(group=_INSTALLATION, name="Java", look=java.java),
    Check(group=_MACHINE, name="Memory", look=machine.memory),
    Check(group=_MACHINE, name="Disk", look=folder.room),
    Check(group=_MACHINE, name="Data folder", look=folder.writable),
    Check(group=_MACHINE, name="Open files", look=machine.open_files),
    Check(group=_MACHINE, name="Ports", look=ports.ports),
    Check(group=_MACHINE, name="Clock", look=machine.clock),
    Check(group=_MACHINE, name="Optional tools", look=machine.tools),
    Check(group=_ENVIRONMENT, name="Variables", look=variables.variables),
    Check(group=_ENVIRONMENT, name="Spark's variables", look=java.spark_variables),
    Check(group=_PLATFORM, name="Platform", look=services.platform),
    Check(group=_PLATFORM, name="Secrets", look=secrets.secrets),
    Check(group=_PLATFORM, name="Certificates", look=secrets.certificates),
    *(
        Check(group=_PLATFORM, name=f"Service: {service.name}", look=partial(services.service, name=service.name))
        for service in STACK
    ),
    Check(group=_PLATFORM, name="Cluster", look=data.cluster),
    Check(group=_PLATFORM, name="Schemas", look=data.registry),
    Check(group=_PLATFORM, name="Connectors", look=data.connectors),
    Check(group=_PLATFORM, name="Dead letters", look=data.dead_letters),
    Check(group=_PLATFORM, name="Queries", look=data.queries),
    Check(group=_PLATFORM, name="Spark", look=data.spark),
    Check(group=_PLATFORM, name="Logs", look=folder.logs),
)
_ANSWERS_MAX: Final = 4
"""How many answers a check waits for, one after the other, at most."""

Outcome = tuple[Check, list[Finding]]


def run_checks(checks: Iterable[Check], context: Context) -> Iterator[Outcome]:
    """Each check with its findings, in their order; all run at the same time, and none can hang or break the others."""
    for running in [_RunningCheck(check, context) for check in checks]:
        yield running.check, running.findings()


class _RunningCheck:
    """One check in a thread of its own, a daemon, because the check may hang."""

    def __init__(self, check: Check, context: Context) -> None:
        self.check = check
        self._found: list[Finding] = []
        self._seconds = check.seconds_max + _ANSWERS_MAX * context.answer_seconds
        self._ends_at = time.monotonic() + self._seconds
        self._thread = threading.Thread(target=self._look, args=(context,), name=check.name, daemon=True)
        self._thread.start()

    def findings(self) -> list[Finding]:
        """What was found, at the latest when the check's time is up."""
        self._thread.join(max(0.0, self._ends_at - time.monotonic()))
        found = list(self._found)
        if self._thread.is_alive():
            found.append(problem(self.check.name, f"no answer within {self._seconds:g} s"))
        return found

    def _look(self, context: Context) -> None:
        try:
            for finding in self.check.look(context):
                self._found.append(finding)  # one by one: what was found before a failure counts
        except Exception as error:  # noqa: BLE001 - an error that keeps a check from looking is its finding
            reason = str(error).partition("\n")[0] or "without a reason"
            self._found.append(problem(self.check.name, f"the check failed: {type(error).__name__}: {reason}"))


def as_json(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """All findings for a program, and how many there are of each level."""
    findings = [
        {
            "group": check.group,
            "check": check.name,
            "level": finding.level.value,
            "subject": finding.subject,
            "found": finding.found,
            "next_steps": list(finding.next_steps),
        }
        for check, found in outcomes
        for finding in found
    ]
    counts = {level.value: sum(item["level"] == level.value for item in findings) for level in Level}
    return {"counts": counts, "findings": findings}
