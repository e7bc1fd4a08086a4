"""Shows how a platform starts, runs and stops: live on a terminal, line by line elsewhere."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final, Self, assert_never

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from deploy.launcher.events import AllReady, Died, Event, Failed, Ready, SparkChecked, Starting, Stopped, Stopping
from deploy.launcher.plan import SPARK, Plan
from deploy.terminal.output import step_markup

_FRAMES_PER_SECOND: Final = 12
_INDENT: Final = "    "


class Display:
    """Shows events; a context manager that restores the terminal."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self._console = console
        self._names = [service.name for service in plan.services]
        self._width = max(len(name) for name in (*self._names, SPARK))
        self._endpoint_width = len("http://") + len(plan.host) + len(":65535")
        self._waiting: dict[str, Spinner] = {}
        self._live = Live(console=console, refresh_per_second=_FRAMES_PER_SECOND, transient=True)
        self._is_starting = True
        self._entered = ExitStack()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._entered.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._settle()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Starting():
                self._wait_for(event.service, event.endpoint)
            case Ready():
                self._waiting.pop(event.service, None)
                self._refresh()
                back = f" (back; restart {event.restarts})" if event.restarts else ""
                row = self._row(event.service, event.endpoint)
                self._line(f"[green]✓[/] {row}  [dim]{event.after_s:.1f} s{back}[/]")
            case Died():
                again = f"starting it again in {event.pause_s:g} s"
                how = f"[bold]{event.service}[/] {event.how}; {again}. Its log: {escape(event.log)}"
                self._line(f"[bold red]✗[/] {how}")
                self._tail(event.tail)
            case SparkChecked():
                self._spark(event.missing.splitlines())
            case AllReady():
                self._settle()
            case Stopping():
                self._settle()
                self._line("[dim]stopping; once more kills everything at once[/]")
            case Stopped(was_killed=True):
                self._line(f"[yellow]![/] {event.service} was killed: it had not stopped after {event.after_s:.1f} s")
            case Stopped():
                self._line(f"[green]✓[/] {event.service.ljust(self._width)}  stopped  [dim]{event.after_s:.1f} s[/]")
            case Failed():
                self._failed(event)
            case _:
                assert_never(event)

    def _failed(self, event: Failed) -> None:
        self._settle()
        self._line(f"[bold red]✗[/] {escape(event.text)}")
        self._tail(event.tail)
        for step in event.next_steps:
            self._line(step_markup(step))

    def _wait_for(self, name: str, endpoint: str) -> None:
        if self._is_starting:
            text = Text.from_markup(f"{self._row(name, endpoint)}  [dim]starting[/]")
            self._waiting[name] = Spinner("dots", text=text)
            self._refresh()

    def _spark(self, missing: Sequence[str]) -> None:
        if not missing:
            self._line(f"[dim]·[/] {SPARK.ljust(self._width)}  [dim]starts on first use[/]")
            return
        self._line(f"[yellow]![/] {SPARK.ljust(self._width)}  will not start: {escape(missing[0])}")
        for line in missing[1:]:
            self._line(f"{_INDENT}{escape(line)}")

    def _row(self, name: str, endpoint: str) -> str:
        return f"[bold]{name.ljust(self._width)}[/]  {escape(endpoint.ljust(self._endpoint_width))}"

    def _tail(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._line(f"{_INDENT}[dim]{escape(line)}[/]")

    def _line(self, markup: str) -> None:
        self._console.print(markup)

    def _refresh(self) -> None:
        self._live.update(Group(*self._waiting.values()), refresh=self._live.is_started)

    def _settle(self) -> None:
        """End the live part: from now on lines are only appended."""
        self._is_starting = False
        self._waiting.clear()
        self._refresh()
        self._entered.close()
