"""Tables, JSON, notes and progress. Results go to stdout, everything else to stderr."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from deploy.views.text import number

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

_PIPE_WIDTH = 10_000
"""A pipe has no width: output for programs is never cut."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; columns whose name ends in `#` are aligned to the right. `Text` keeps its colours."""
    if not out.is_terminal:
        out.width = _PIPE_WIDTH  # `print(width=…)` can only make it narrower
    out.print(table_of(title, columns, rows))


def table_of(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, wraps: bool = True) -> Table:
    """A table to print; cells that are too wide go on in the next line, or are cut."""
    shown = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        justify: Any = "right" if column.endswith("#") else "left"
        shown.add_column(
            column.removesuffix("#").strip(),
            justify=justify,
            header_style="bold cyan",
            overflow="fold" if wraps else "ellipsis",
            no_wrap=not wraps,
        )
    for row in rows:
        shown.add_row(*map(_cell, row))
    return shown


def facts(title: str, pairs: Iterable[tuple[str, object]]) -> None:
    """Print a few named values below a title."""
    shown = list(pairs)
    width = max((len(name) for name, _ in shown), default=0)
    out.print(f"\n[bold]{escape(title)}[/]")
    for name, value in shown:
        out.print(
            f"  [cyan]{escape(name.ljust(width))}[/]  {escape(number(value) if isinstance(value, int) else str(value))}"
        )


def print_json(value: object) -> None:
    """Print a value as JSON: in colour on a terminal, plain elsewhere."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=lambda item: msgspec.to_builtins(item, enc_hook=str))
    if out.is_terminal:
        out.print_json(text)
    else:
        sys.stdout.write(text + "\n")


def examples(*lines: str) -> str:
    """The text below a command's help, with a paragraph for each line."""
    return "\n\n".join(["Examples:", *lines])


def done(text: str) -> None:
    """Report success."""
    err.print(f"[green]✓[/] {text}")


def note(text: str) -> None:
    """Print a remark."""
    err.print(f"[dim]{text}[/]")


def failure(text: str, next_steps: Sequence[str] = ()) -> None:
    """Report a failure and what to do about it; commands in the steps are in backticks."""
    err.print(f"[bold red]✗[/] {escape(text)}")
    steps(next_steps)


def steps(next_steps: Iterable[str]) -> None:
    """Print what to do next."""
    for step in next_steps:
        err.print(step_markup(step))


def step_markup(step: str) -> str:
    """A next step as a line for a terminal: the commands in it in bold."""
    return "  [dim]→[/] " + re.sub(r"`([^`]+)`", r"[bold]\1[/]", escape(step))


def report_deleted(kind: str, outcome: Mapping[str, object | None], next_steps: Sequence[str] = ()) -> bool:
    """Report for each item whether it was deleted (no error); returns whether all were."""
    for name, error in outcome.items():
        if error is None:
            done(f"{kind} [bold]{escape(name)}[/] deleted")
        else:
            failure(f"{kind} {name} was not deleted: {error}", next_steps)
    return not any(outcome.values())


def waiting(text: str) -> AbstractContextManager[object]:
    """Show that the command waits for an answer, on a terminal only."""
    return err.status(text) if err.is_terminal else nullcontext()


def progress(*, visible: bool = True) -> Progress:
    """A progress bar on stderr, on a terminal only."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        redirect_stdout=False,  # else output for a file or pipe ends up on the terminal, beside the bar
        disable=not (visible and err.is_terminal),
    )


def _cell(value: object) -> str | Text:
    if isinstance(value, Text):
        return value
    return escape(number(value) if isinstance(value, int) else str(value))
