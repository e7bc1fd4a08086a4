"""`caudal doctor`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deploy.launcher.options import DataOption
from deploy.launcher.request import DEFAULT_DATA
from deploy.options import Output, OutputOption

if TYPE_CHECKING:
    from deploy.launcher.state import PlatformState

EPILOG: Final = """Examples:

caudal doctor

caudal doctor --data /var/lib/caudal

caudal doctor -o json

The exit code is 1 when something is marked ✗, and 0 otherwise. Nothing is changed, and nothing is started."""


def doctor(
    *,
    data: DataOption = DEFAULT_DATA,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.01, help="How long a service may take to answer.")
    ] = 3.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Look at this machine, its settings and the running platform; say what is not right, and what to do next."""
    from deploy.doctor.checks import CHECKS
    from deploy.doctor.finding import Level
    from deploy.doctor.running import carried_out
    from deploy.doctor.surroundings import Surroundings
    from deploy.doctor.view import as_json, print_outcomes
    from deploy.output import print_json

    folder = data.expanduser().absolute()
    surroundings = Surroundings(environment=os.environ, data=folder, platform=_platform(folder), answer_seconds=timeout)
    outcomes = carried_out(CHECKS, surroundings)
    if output is Output.JSON:
        told, findings = as_json(outcomes, {"data": str(folder)})
        print_json(told)
    else:
        findings = print_outcomes(outcomes)
    if any(finding.level is Level.PROBLEM for finding in findings):
        raise typer.Exit(1)


def _platform(data: Path) -> "PlatformState | None":
    from deploy.launcher import state

    try:
        return state.read(data)
    except OSError:
        return None  # a folder that may not be read; the check of the folder tells that
