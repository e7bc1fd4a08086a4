"""Answers on the terminal, for programs where JSON is wanted, and in a file where they are spooled."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.text import Text

from deploy.terminal.output import err, out, print_json, step_markup, table_of
from deploy.terminal.sql.live import LiveView
from deploy.views.sql.blocks import Block, Grid, Lines, NamedValues
from deploy.views.sql.mistakes import Excerpt, Mistake
from deploy.views.sql.rows import Column, LiveTable, as_object, cell
from deploy.views.text import printable

_SPOOL_WIDTH: Final = 160
_PIPE_WIDTH: Final = 10_000
_WIDTH_MIN: Final = 6
_CUT: Final = "…"


class Screen:
    """Where answers go."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self.wraps = True
        """Whether wide cells go on in the next line; else they are cut."""
        self._spool: Console | None = None

    @property
    def is_live(self) -> bool:
        """Whether a table may be drawn over and over."""
        return out.is_terminal and not self.is_json

    # --- spooling ---

    def spool_to(self, path: Path) -> None:
        """Write a copy of everything to a file from now on. Raises OSError."""
        self.end_spool()
        file = path.open("a", encoding="utf-8")
        self._spool = Console(file=file, highlight=False, soft_wrap=True, width=_SPOOL_WIDTH, color_system=None)

    def end_spool(self) -> None:
        """Stop writing the copy."""
        if self._spool is not None:
            self._spool.file.close()
            self._spool = None

    def spool(self, text: str) -> None:
        """Write text to the copy alone, such as what was typed."""
        if self._spool is not None:
            self._spool.print(text, markup=False)

    # --- answers ---

    def entity(self, entity: Any, blocks: Iterable[Block]) -> None:
        """An answer: as it is for programs, else as tables and lines."""
        if self.is_json:
            print_json(entity)
            sys.stdout.flush()
            self.spool(json.dumps(entity, ensure_ascii=False))
            return
        for block in blocks:
            self._block(block)
        sys.stdout.flush()

    def text(self, line: str) -> None:
        """A line of a PRINT, or of a command's own."""
        self._print(Text(printable(line)))
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """What is good to know; not part of an answer."""
        err.print(f"[dim]{escape(text)}[/]")
        self.spool(text)

    def success(self, text: str) -> None:
        """Something was done that has no answer of its own."""
        err.print(f"[green]✓[/] {escape(text)}")
        self.spool(text)

    def mistake(self, name: str, mistake: Mistake, part: Excerpt) -> None:
        """What is wrong, with its line, and a mark below the place."""
        where = f"{printable(name)}:{mistake.line}:{mistake.column}:"
        before, marked, after = printable(part.before), printable(part.marked), printable(part.after)
        err.print(f"[bold red]✗[/] [bold]{escape(where)}[/] {escape(printable(mistake.message))}")
        err.print(f"  {escape(before)}[red]{escape(marked)}[/]{escape(after)}")
        err.print(f"  {' ' * cell_len(before)}[bold red]{'^' * max(1, cell_len(marked))}[/]")
        self.spool(f"{where} {printable(mistake.message)}")

    def failure(self, text: str, steps: Sequence[str] = ()) -> None:
        """What has failed, and what to do about it."""
        err.print(f"[bold red]✗[/] {escape(text)}")
        for step in steps:
            err.print(step_markup(step))
        self.spool(text)

    # --- rows ---

    def rows(self, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
        """All rows of a query that has ended, or the next of many."""
        if self.is_json:
            for row in rows:
                self.row_object(columns, row)
            return
        headings = [escape(printable(column.heading)) for column in columns]
        self._print(table_of("", headings, (self._cells(row) for row in rows), wraps=self.wraps))
        sys.stdout.flush()

    def row_object(self, columns: Sequence[Column], row: Sequence[Any], *, is_deleted: bool = False) -> None:
        """A row as a line of JSON."""
        text = json.dumps(as_object(columns, row, is_deleted=is_deleted), ensure_ascii=False)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        self.spool(text)

    def live(self, columns: Sequence[Column], found: LiveTable) -> LiveView:
        """A table that is drawn again as it changes, until the block ends."""
        return LiveView(columns, found, wraps=self.wraps)

    def last_of(self, columns: Sequence[Column], found: LiveTable) -> None:
        """The end of a live table, for the copy."""
        if self._spool is not None:
            rows = [self._cells(row) for row, _ in found.latest(len(found), now_s=time.monotonic())]
            self._spool.print(table_of("", [escape(column.heading) for column in columns], rows))

    def row_lines(self, columns: Sequence[Column]) -> "RowLines":
        """Prints rows one by one, below their names."""
        return RowLines(columns, self)

    def _cells(self, row: Sequence[Any]) -> list[Text | str]:
        return [Text("null", style="dim") if value is None else Text(cell(value)) for value in row]

    def print_line(self, text: Text) -> None:
        """A line of rows that come one by one."""
        self._print(text)
        sys.stdout.flush()

    def _block(self, block: Block) -> None:
        match block:
            case Grid(columns, rows, title):
                names = [escape(printable(column)) for column in columns]
                cells = ([printable(value) for value in row] for row in rows)
                self._print(table_of(escape(printable(title)), names, cells, wraps=self.wraps))
            case NamedValues(title, values):
                width = max((cell_len(name) for name, _ in values), default=0)
                self._print(Text(f"\n{printable(title)}", style="bold"))
                for name, value in values:
                    self._print(Text.assemble("  ", (name.ljust(width), "cyan"), "  ", printable(value)))
            case Lines(lines, is_remark=True):
                for line in lines:
                    err.print(f"[dim]{step_markup(line).strip() if '`' in line else escape(printable(line))}[/]")
                    self.spool(line)
            case Lines(lines):
                for line in lines:
                    self._print(Text(printable(line)))

    def _print(self, shown: RenderableType) -> None:
        if not out.is_terminal:
            out.width = _PIPE_WIDTH
        out.print(shown)
        if self._spool is not None:
            self._spool.print(shown)


class RowLines:
    """Rows of events: a line each, in columns that grow with what comes."""

    def __init__(self, columns: Sequence[Column], screen: Screen) -> None:
        self._columns = columns
        self._screen = screen
        self._widths = [max(cell_len(printable(column.name)), _WIDTH_MIN) for column in columns]
        self._has_head = False

    def add(self, row: Sequence[Any], *, is_deleted: bool = False) -> None:
        """Print a row, after the names of the columns if it is the first."""
        if self._screen.is_json:
            self._screen.row_object(self._columns, row, is_deleted=is_deleted)
            return
        cells = [cell(value, is_whole=self._screen.wraps) for value in row]
        widest = self._widest()
        if not self._screen.wraps:
            cells = [text if cell_len(text) <= widest else f"{text[: widest - 1]}{_CUT}" for text in cells]
        self._widths = [
            min(max(width, cell_len(text)), widest) for width, text in zip(self._widths, cells, strict=False)
        ]
        if not self._has_head:
            self._has_head = True
            self._line([printable(column.name) for column in self._columns], "bold cyan")
        self._line(cells, "dim strike" if is_deleted else "")

    def _widest(self) -> int:
        room = (out.width if out.is_terminal else _PIPE_WIDTH) - 2 * len(self._columns)
        return max(_WIDTH_MIN, room // max(1, len(self._columns)))

    def _line(self, cells: Sequence[str], style: str) -> None:
        parts = []
        for column, text, width in zip(self._columns, cells, self._widths, strict=False):
            space = " " * max(0, width - cell_len(text))
            parts.append(space + text if column.heading.endswith("#") else text + space)
        self._screen.print_line(Text("  ".join(parts).rstrip(), style=style))
