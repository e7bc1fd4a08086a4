"""A table on the terminal that keeps up with a push query."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from deploy.terminal.output import out, table_of
from deploy.views.sql.rows import Column, LiveTable, cell
from deploy.views.text import number, plural, printable

_FRAMES_PER_SECOND: Final = 8
_OTHER_LINES: Final = 6
"""Lines of the screen that are not rows: heading, rules, and what is below."""


class LiveView:
    """Draws a table several times a second; a context manager, which leaves the last state on the screen."""

    def __init__(self, columns: Sequence[Column], found: LiveTable, *, wraps: bool) -> None:
        self._columns = columns
        self._found = found
        self._wraps = wraps
        self._has_ended = False
        self._lock = threading.Lock()  # it is drawn in a thread of rich
        self._live = Live(
            get_renderable=self._draw, console=out, refresh_per_second=_FRAMES_PER_SECOND, vertical_overflow="crop"
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended = True
        self._live.stop()

    def add(self, row: Sequence[Any], *, is_deleted: bool = False) -> None:
        """A row that has come."""
        with self._lock:
            self._found.take(row, is_deleted=is_deleted, now_s=time.monotonic())

    def _draw(self) -> RenderableType:
        room = max(1, out.height - _OTHER_LINES)
        with self._lock:
            rows = self._found.latest(room, now_s=time.monotonic())
            count, changes = len(self._found), self._found.changes
        cells = [[Text(cell(value), style="bold" if is_new else "") for value in row] for row, is_new in rows]
        headings = [escape(printable(column.heading)) for column in self._columns]
        hidden = f"; {number(count - len(rows))} more, which changed earlier" if count > len(rows) else ""
        below = f"{plural(count, 'row')}, {plural(changes, 'change')}{hidden}"
        below += "" if self._has_ended else "; Ctrl-C ends the query"
        return Group(table_of("", headings, cells, wraps=self._wraps), Text(below, style="dim"))
