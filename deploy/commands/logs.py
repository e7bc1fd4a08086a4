"""`caudal logs`: the logs of a platform's services."""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from deploy.commands import completion
from deploy.commands.options import DataOption
from deploy.launcher.log_reading import LogLine, LogReaders
from deploy.launcher.request import DEFAULT_DATA
from deploy.stack import BY_NAME, broker_number
from deploy.terminal.output import examples, failure, out

EPILOG: Final = examples(
    "caudal logs",
    "caudal logs connect --lines 200",
    "caudal logs broker connect --follow",
    "Besides the services, `launcher` (starts, failures, restarts) and `spark` have logs. Files: DIR/logs.",
)

LAUNCHER: Final = "launcher"
SPARK: Final = "spark"
_COLOURS: Final = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan")
_LOOK_S: Final = 0.2


def logs(
    services: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SERVICE]...", help="Whose logs; all by default.", autocompletion=completion.logs),
    ] = None,
    *,
    data: DataOption = DEFAULT_DATA,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new lines, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", min=0, help="Last lines of each.")] = 20,
) -> None:
    """Show the last lines of each service, in the order of time."""
    folder = data.expanduser().absolute()
    known = _known_names(folder)
    if unknown := [name for name in services or () if name not in known]:
        raise typer.BadParameter(f"{unknown[0]!r} has no log; there are {', '.join(known)}")
    # `broker` stands for all brokers of a cluster.
    chosen = [
        name for name in known if not services or name in services or ("broker" in services and broker_number(name))
    ]
    if not (folder / "logs").is_dir():
        failure(f"there are no logs in {folder}", ["name the platform's folder:  `--data DIR` (or set CAUDAL_DATA)"])
        raise typer.Exit(1)
    paths = {name: folder / "logs" / f"{name}.log" for name in chosen}
    if SPARK in paths:
        paths[SPARK] = folder / SPARK / "engine.log"
    readers = LogReaders(paths)
    printer = _Printer(chosen)
    try:
        printer.write(readers.last_lines(lines))
        while follow:
            time.sleep(_LOOK_S)
            printer.write(readers.new_lines())
    except KeyboardInterrupt:
        pass  # that is how following ends
    finally:
        readers.close()


def _known_names(folder: Path) -> list[str]:
    """Everything that has a log: a cluster has one for each broker instead of the only one."""
    stems = (path.stem for path in (folder / "logs").glob("broker-*.log"))
    numbers = sorted(number for stem in stems if (number := broker_number(stem)))
    first, *others = BY_NAME
    return [LAUNCHER, first, *(f"broker-{number}" for number in numbers), *others, SPARK]


class _Printer:
    """Lines on stdout: with the name of the service when there are several, coloured on a terminal."""

    def __init__(self, names: Sequence[str]) -> None:
        width = max(map(len, names))
        self._console = out
        self._prefixes = {name: f"{name.ljust(width)} | " if len(names) > 1 else "" for name in names}
        self._styles = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}

    def write(self, lines: Iterable[LogLine]) -> None:
        """Write lines."""

        for line in lines:
            prefix = self._prefixes[line.name]
            if self._console.is_terminal:
                self._console.print(Text(prefix, style=self._styles[line.name]) + Text(line.text))
            else:
                sys.stdout.write(f"{prefix}{line.text}\n")
        sys.stdout.flush()
