"""The verdict: every figure of a run beside its pass mark."""

from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.chaos.checker import UNFINISHED
from tests.chaos.run import HEAL_S, MIN_ISR_KEPT, Result

_RULES: Final = {
    "S1": "acknowledged records and committed transactions that were lost",
    "S2": "offsets at which readers saw different records",
    "S3": "acknowledged offsets that are not unique, do not rise or hold another record",
    "S4": "records of idempotent producers that are duplicated or reordered",
    "S5": "rejected or aborted records that readers of committed records saw",
    "S6": "torn transactions",
    "S7": "records missing or too many after consume-transform-produce",
    "S8": "high watermarks that went back, records that vanished or were skipped",
    "S11": "writes acknowledged, or reads refused, below min.insync.replicas",
    "L4": "brokers that ended by themselves or did not start again",
    "S12": "committed offsets lost, partitions with two owners in a generation",
    UNFINISHED: "partitions of which the last read did not finish: their rest is not judged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the verdict."""

    rule: str
    what: str
    value: str
    pass_mark: str
    passes: bool
    is_timing: bool = False
    """Whether a slow machine may fail it."""


def judge(result: Result) -> list[Figure]:
    """Put each figure beside its pass mark."""
    report = result.report
    figures = [
        Figure(rule=rule, what=what, value=str(report.count(rule)), pass_mark="0", passes=not report.count(rule))
        for rule, what in _RULES.items()
    ]
    differences = len(result.comparison.differences)
    healed = result.healed_after_s
    figures += [
        Figure(
            rule="S10",
            what=f"differences between replicas ({result.comparison.partitions} partitions)",
            value=str(differences),
            pass_mark="0",
            passes=not differences,
        ),
        Figure(
            rule="S10",
            what="seconds until all replicas were in sync after the last fault",
            value="never" if healed is None else f"{healed:.1f}",
            pass_mark=f"≤ {HEAL_S:.0f}",
            passes=healed is not None and healed <= HEAL_S,
            is_timing=healed is not None,
        ),
        _failover(result, was_controller=False),
        _failover(result, was_controller=True),
        Figure(
            rule="",
            what="clients that failed or hung",
            value=", ".join(result.failed_clients) or "0",
            pass_mark="0",
            passes=not result.failed_clients,
        ),
    ]
    return figures


def _failover(result: Result, *, was_controller: bool) -> Figure:
    report = result.report
    found = [failover for failover in report.failovers if failover.was_controller == was_controller]
    slowest = max((failover.seconds for failover in found), default=0.0)
    who = "leader that was the controller too" if was_controller else "leader"
    has_failed = bool(report.count("L1"))
    return Figure(
        rule="L1",
        what=f"slowest of {len(found)} failovers from a {who}, seconds",
        value="never" if has_failed else f"{slowest:.2f}",
        pass_mark=f"≤ {result.failover_s:.0f}",
        passes=not has_failed and slowest <= result.failover_s,
        is_timing=not has_failed,
    )


def print_verdict(result: Result, figures: list[Figure]) -> None:
    """Print what was done, the figures, and the first cases of each violation."""
    console = Console(width=120)
    report = result.report
    faults = ", ".join(f"{count} {name}" for name, count in report.faults.most_common())
    console.print(f"\n{report.faults.total()} faults: {faults}")
    console.print(
        f"{report.acknowledged:,} records acknowledged, {report.unknown:,} unknown, {report.reads:,} reads, "
        f"{report.transformed:,} transformed, {report.watermarks:,} watermarks, "
        f"{report.offset_commits:,} offset commits"
    )
    console.print("transactions: " + ", ".join(f"{count:,} {name}" for name, count in report.transactions.items()))
    times = sorted(failover.seconds for failover in report.failovers)
    if times:
        console.print(f"failover: median {times[len(times) // 2]:.2f} s, maximum {times[-1]:.2f} s")
    console.print(f"{report.resent} records sent again by a client under a new epoch of its producer")
    console.print(f"one in-sync replica left: {result.probe} (to be {MIN_ISR_KEPT})")
    table = Table("rule", "figure", "found", "pass mark", "")
    for figure in figures:
        verdict = "[green]pass[/]" if figure.passes else "[red]FAIL[/]"
        table.add_row(figure.rule, figure.what, figure.value, figure.pass_mark, verdict)
    console.print(table)
    for rule, violations in report.violations.items():
        for example in violations.examples:
            console.print(f"{rule}: {example}")
    for difference in result.comparison.differences[:10]:
        console.print(f"S10: {difference}")
    passes = all(figure.passes for figure in figures)
    console.print("[bold green]PASS[/]" if passes else "[bold red]FAIL[/]")
