"""`caudal doctor`: looks at the machine, the environment and the running platform, and says what to do next."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from deploy.commands.options import DataOption, Output, OutputOption
from deploy.launcher.request import DEFAULT_DATA
from deploy.terminal.output import examples, out, print_json
from deploy.views.text import plural

if TYPE_CHECKING:
    from deploy.doctor.checks import Outcome
    from deploy.doctor.finding import Finding

EPILOG: Final = examples(
    "caudal doctor",
    "caudal doctor --data /var/lib/caudal",
    "caudal doctor -o json",
    "The exit code is 1 when something is marked ✗, and 0 otherwise. It changes and starts nothing.",
)


def doctor(
    *,
    data: DataOption = DEFAULT_DATA,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.01, help="How long a service may take to answer.")
    ] = 3.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check this machine, its settings and the running platform; say what is wrong, and what to do next."""
    from deploy.doctor.checks import CHECKS, as_json, run_checks
    from deploy.doctor.finding import Context, Level
    from deploy.launcher import state

    folder = data.expanduser().absolute()
    try:
        platform = state.read(folder)
    except OSError:
        platform = None  # a folder that may not be read; the check of the folder says so
    context = Context(environment=os.environ, data=folder, platform=platform, answer_seconds=timeout)
    outcomes = run_checks(CHECKS, context)
    if output is Output.JSON:
        listed = list(outcomes)
        print_json({"data": str(folder)} | as_json(listed))
        findings = [finding for _, found in listed for finding in found]
    else:
        findings = _print(outcomes)
    if any(finding.level is Level.PROBLEM for finding in findings):
        raise typer.Exit(1)


def _print(outcomes: "Iterable[Outcome]") -> "list[Finding]":
    """Print each finding as it comes, under its group; returns all of them."""
    from deploy.doctor.finding import Level

    signs = {
        Level.OK: "[green]✓[/]",
        Level.NOTE: "[dim]·[/]",
        Level.WARNING: "[yellow]![/]",
        Level.PROBLEM: "[bold red]✗[/]",
    }
    seen: list[Finding] = []
    group = ""
    for check, findings in outcomes:
        if findings and check.group != group:
            group = check.group
            out.print(f"\n[bold]{group}[/]")
        for finding in findings:
            out.print(f"  {signs[finding.level]} [cyan]{escape(finding.subject)}[/]  {escape(finding.found)}")
            for step in finding.next_steps:
                out.print(f"      [dim]→ {escape(step)}[/]")
        seen.extend(findings)
    out.print(f"\n{summary(seen)}")
    return seen


def summary(findings: "Iterable[Finding]") -> str:
    """The last line: how many problems and warnings there are."""
    from deploy.doctor.finding import Level

    levels = [finding.level for finding in findings]
    problems, warnings = levels.count(Level.PROBLEM), levels.count(Level.WARNING)
    if problems:
        also = f", and {plural(warnings, 'warning')}" if warnings else ""
        return f"[bold red]✗[/] {plural(problems, 'problem')}{also}: the lines with → say what to do"
    if warnings:
        return f"[yellow]![/] no problems, {plural(warnings, 'warning')}"
    return "[green]✓[/] no problems"
