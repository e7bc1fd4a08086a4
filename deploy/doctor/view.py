"""Findings as people read them, and as programs do."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.markup import escape

from deploy.doctor.checks import Check
from deploy.doctor.finding import Finding, Level
from deploy.output import out, plural

_SIGNS: Final = {
    Level.OK: "[green]✓[/]",
    Level.NOTE: "[dim]·[/]",
    Level.WARNING: "[yellow]![/]",
    Level.PROBLEM: "[bold red]✗[/]",
}

Outcome = tuple[Check, list[Finding]]


def print_outcomes(outcomes: Iterable[Outcome]) -> list[Finding]:
    """Print each finding as it comes, under its group; gives all of them."""
    seen: list[Finding] = []
    group = ""
    for check, findings in outcomes:
        if findings and check.group != group:
            group = check.group
            out.print(f"\n[bold]{group}[/]")
        for finding in findings:
            _print(finding)
        seen.extend(findings)
    out.print(f"\n{summary(seen)}")
    return seen


def as_json(outcomes: Iterable[Outcome], surroundings: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """The same for a program."""
    listed, seen = [], []
    for check, findings in outcomes:
        seen.extend(findings)
        listed += [
            {
                "group": check.group,
                "check": check.name,
                "level": finding.level.value,
                "subject": finding.subject,
                "found": finding.found,
                "next_steps": list(finding.next_steps),
            }
            for finding in findings
        ]
    counts = {level.value: sum(finding.level is level for finding in seen) for level in Level}
    return {**surroundings, "counts": counts, "findings": listed}, seen


def summary(findings: Iterable[Finding]) -> str:
    """The last line: how it stands."""
    levels = [finding.level for finding in findings]
    problems, warnings = levels.count(Level.PROBLEM), levels.count(Level.WARNING)
    if problems:
        also = f", and {plural(warnings, 'warning')}" if warnings else ""
        return f"[bold red]✗[/] {plural(problems, 'problem')}{also}: the lines with → say what to do"
    if warnings:
        return f"[yellow]![/] no problems, {plural(warnings, 'warning')}"
    return "[green]✓[/] all is well"


def _print(finding: Finding) -> None:
    out.print(f"  {_SIGNS[finding.level]} [cyan]{escape(finding.subject)}[/]  {escape(finding.found)}")
    for step in finding.next_steps:
        out.print(f"      [dim]→ {escape(step)}[/]")
