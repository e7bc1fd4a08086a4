"""`caudal status`: the state of a platform."""

from collections.abc import Mapping
from typing import Any, Final

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands.options import DataOption, Output, OutputOption
from deploy.launcher.request import DEFAULT_DATA
from deploy.launcher.state import read
from deploy.terminal.output import examples, failure, note, out, print_json, table
from deploy.views.text import duration, size

EPILOG: Final = examples(
    "caudal status",
    "caudal status --data ~/river -o json",
    "Exit code: 0 when all is ready, 1 when something is not, 3 when no platform runs there.",
)

EXIT_NOT_READY: Final = 1
EXIT_NOTHING_RUNS: Final = 3
_DISK_LOW_BYTES: Final = 1 << 30
_COLOURS: Final = {"ready": "green", "starting": "yellow", "restarting": "yellow", "stopped": "dim"}


def status(*, data: DataOption = DEFAULT_DATA, output: OutputOption = Output.TABLE) -> None:
    """Show each service of a platform: state, process, endpoint, age, restarts and memory."""
    from deploy.views.platform import examine

    folder = data.expanduser().absolute()
    platform = read(folder)
    if platform is None:
        if output is Output.JSON:
            print_json({"ready": False, "state": "stopped", "data": str(folder), "services": {}})
        else:
            failure(
                f"no platform runs in {folder}",
                [
                    "start it:  `caudal up`, in the background with  `--detach`",
                    "or name its folder:  `--data DIR` (or set CAUDAL_DATA)",
                ],
            )
        raise typer.Exit(EXIT_NOTHING_RUNS)
    found = examine(platform)
    if output is Output.JSON:
        print_json(found)
    else:
        _print(found)
    raise typer.Exit(0 if found["ready"] else EXIT_NOT_READY)


def _print(found: Mapping[str, Any]) -> None:
    process = f"process {found['pid']}, for {duration(found['uptime_s'])}"
    title = f"Platform in {escape(found['data'])}: {found['state']}, {process}"
    columns = ["Service", "State", "Process", "Endpoint", "Up", "Restarts#", "Memory#"]
    rows: list[tuple[object, ...]] = []
    for name, service in found["services"].items():
        shown = service["state"] if _is_well(service) or service["state"] != "ready" else "does not answer"
        rows.append(
            (
                name,
                Text(shown, style=_COLOURS.get(shown, "red")),
                str(service["pid"] or ""),
                service["endpoint"],
                "" if service["uptime_s"] is None else duration(service["uptime_s"]),
                service["restarts"],
                _size(service["memory_bytes"]),
            )
        )
    if (spark := found.get("spark")) is not None:
        if spark["pid"]:
            address = f"sc://localhost:{spark['connect_port']}"
            rows.append(("spark", "runs", str(spark["pid"]), address, "", "", _size(spark["memory_bytes"])))
        else:
            rows.append(("spark", "needs Java" if spark["missing"] else "starts on first use", "", "", "", "", ""))
    table(title, columns, rows)
    if found["disk_free_bytes"] < _DISK_LOW_BYTES:
        note(f"[yellow]the disk has only {size(found['disk_free_bytes'])} left[/]")
    for trouble in (found.get("cluster") or {}).get("troubles", ()):
        out.print(f"[{'red]✗' if trouble['is_outage'] else 'yellow]!'}[/] {escape(trouble['text'])}")
    if not found["ready"]:
        waiting = [name for name, service in found["services"].items() if not _is_well(service)]
        note(f"why:  caudal logs {' '.join(waiting)} --data {escape(found['data'])}")


def _is_well(service: Mapping[str, Any]) -> bool:
    return service["state"] == "ready" and bool(service["answers"])


def _size(count: int) -> str:
    return size(count) if count else ""
