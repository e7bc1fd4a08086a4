"""The output of the tour: headings, commands to copy, results, tables. On a pipe the same, without colour."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.cells import cell_len
from rich.markup import escape

from deploy.terminal.output import err, out
from deploy.views.text import printable

_INDENT = "    "
_GAP = "   "
NEAR = "  "
"""The indent of the lines of a section."""


class Progress(Protocol):
    """Shown while the tour waits."""

    def __call__(self, text: str) -> None:
        """Replace the line that is shown."""


def title(text: str, below: str) -> None:
    """The first lines."""
    out.print(f"\n[bold]{escape(text)}[/]  [dim]{escape(below)}[/]")


def heading(place: str, text: str) -> None:
    """The name of a step, and its place among the others."""
    out.print(f"\n[bold cyan]{place}[/]  [bold]{escape(text)}[/]")


def explanation(text: str) -> None:
    """What a step does, in a line."""
    out.print(f"{_INDENT} {escape(text)}")


def command(text: str) -> None:
    """A command that does the same by hand."""
    out.print(f"{_INDENT} [dim]$[/] [cyan]{escape(text)}[/]")


def success(text: str) -> None:
    """A result that was checked."""
    out.print(f"{_INDENT} [green]✓[/] {escape(printable(text))}")


def skipped(text: str) -> None:
    """What was left out, and why."""
    first, *others = text.splitlines()
    out.print(f"{_INDENT} [yellow]–[/] {escape(first)}")
    for line in others:
        out.print(f"{_INDENT}   [dim]{escape(line)}[/]")


def remark(text: str) -> None:
    """A remark."""
    out.print(f"{_INDENT}   [dim]{escape(printable(text))}[/]")


def rows(columns: Sequence[str], values: Iterable[Sequence[object]]) -> None:
    """A small table; columns whose name ends in `#` are aligned to the right."""
    names = [column.removesuffix("#") for column in columns]
    lines = [names, *(["–" if value is None else printable(str(value)) for value in row] for row in values)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for index, line in enumerate(lines):
        cells = []
        for cell, width, column in zip(line, widths, columns, strict=True):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if column.endswith("#") else cell + space)
        text = _GAP.join(cells)
        out.print(
            f"{_INDENT}   [bold]{escape(text.rstrip())}[/]" if index == 0 else f"{_INDENT}   {escape(text.rstrip())}"
        )


def pairs(values: Sequence[tuple[str, str]], *, indent: str = _INDENT + _GAP) -> None:
    """Names and values."""
    width = max(cell_len(name) for name, _ in values)
    for name, value in values:
        out.print(f"{indent}[cyan]{escape(printable(name).ljust(width))}[/]{_GAP}{escape(printable(value))}")


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """A line with a spinner while the tour waits, on a terminal only."""
    if not err.is_terminal:
        yield lambda _: None
        return
    with err.status(escape(text)) as status:
        yield lambda line: status.update(escape(line))


def result(text: str) -> None:
    """The result of the tour."""
    out.print(f"\n[bold green]✓[/] [bold]{escape(text)}[/]")


def section(text: str) -> None:
    """The heading of a section."""
    out.print(f"\n[bold]{escape(text)}[/]")


def code(*lines: str) -> None:
    """Lines to copy."""
    for line in lines:
        out.print(f"{NEAR}[cyan]{escape(line)}[/]")


def blank() -> None:
    """An empty line."""
    out.print()
