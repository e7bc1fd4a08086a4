"""`caudal status`: how a platform fares."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from deploy.launcher.options import DataOption
from deploy.launcher.request import DEFAULT_DATA
from deploy.launcher.state import PlatformState, ServiceState, read
from deploy.options import Output, OutputOption

EPILOG: Final = """Examples:

caudal status

caudal status --data ~/river -o json

Exit code: 0 when all is ready, 1 when something is not, 3 when no platform runs there."""

EXIT_NOT_READY: Final = 1
EXIT_NOTHING_RUNS: Final = 3
_DISK_LOW_BYTES: Final = 1 << 30
_ANSWER_TIMEOUT_S: Final = 5.0
_COLOURS: Final = {"ready": "green", "starting": "yellow", "restarting": "yellow", "stopped": "dim"}


def status(*, data: DataOption = DEFAULT_DATA, output: OutputOption = Output.TABLE) -> None:
    """Show each service of a platform: state, process, endpoint, age, restarts and memory."""
    from deploy.output import print_json

    folder = data.expanduser().absolute()
    platform = read(folder)
    if platform is None:
        _tell_nothing_runs(folder, output)
        raise typer.Exit(EXIT_NOTHING_RUNS)
    found = examined(platform)
    if output is Output.JSON:
        print_json(found)
    else:
        _show(found)
    raise typer.Exit(0 if found["ready"] else EXIT_NOT_READY)


def examined(platform: PlatformState) -> dict[str, Any]:
    """What is known about a platform: what its launcher has written, and what can be seen from here."""
    from core_broker.service.clock import SystemClock
    from deploy.launcher.memory import memory_of
    from deploy.launcher.spark import engine_pid

    now_ms = SystemClock().now_ms()
    answers = asyncio.run(_answers(platform.services))
    told: dict[str, Any] = msgspec.to_builtins(platform)
    for name, service in platform.services.items():
        told["services"][name] |= {
            "answers": answers[name],
            "uptime_s": _age_s(service, now_ms),
            "memory_bytes": memory_of(service.pid) if service.pid else 0,
        }
    if platform.spark is not None:
        pid = engine_pid(Path(platform.spark.data_dir))
        told["spark"] |= {"pid": pid, "memory_bytes": memory_of(pid) if pid else 0}
    told["ready"] = platform.is_ready and all(answers.values())
    told["uptime_s"] = max(0, now_ms - platform.started_ms) // 1000
    told["disk_free_bytes"] = shutil.disk_usage(platform.data).free
    return told


def nothing_runs(folder: Path) -> tuple[str, list[str]]:
    """What to say when there is no platform."""
    return f"no platform runs in {folder}", [
        "start it:  [bold]caudal up[/], in the background with  [bold]--detach[/]",
        "or say where it is:  [bold]--data DIR[/] (or set CAUDAL_DATA)",
    ]


async def _answers(services: Mapping[str, ServiceState]) -> dict[str, bool]:
    from deploy.launcher.health import is_healthy

    urls = [service.metrics.removesuffix("/metrics") for service in services.values()]
    found = await asyncio.gather(*(is_healthy(url, timeout_s=_ANSWER_TIMEOUT_S) for url in urls))
    return dict(zip(services, found, strict=True))


def _age_s(service: ServiceState, now_ms: int) -> int | None:
    if service.pid is None or service.started_ms is None:
        return None
    return max(0, now_ms - service.started_ms) // 1000


def _tell_nothing_runs(folder: Path, output: Output) -> None:
    from deploy.output import failure, print_json

    if output is Output.JSON:
        print_json({"ready": False, "state": "stopped", "data": str(folder), "services": {}})
    else:
        failure(*nothing_runs(folder))


def _show(found: Mapping[str, Any]) -> None:
    from rich.markup import escape

    from deploy.output import note, table

    process = f"process {found['pid']}, for {_age(found['uptime_s'])}"
    title = f"Platform in {escape(found['data'])}: {found['state']}, {process}"
    columns = ["Service", "State", "Process", "Endpoint", "Up", "Restarts#", "Memory#"]
    table(title, columns, [*_rows(found["services"]), *_spark_row(found.get("spark"))])
    if found["disk_free_bytes"] < _DISK_LOW_BYTES:
        note(f"[yellow]the disk has only {_size(found['disk_free_bytes'])} left[/]")
    if not found["ready"]:
        note(f"why:  caudal logs --data {escape(found['data'])}")


def _rows(services: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[object, ...]]:
    from rich.text import Text

    for name, service in services.items():
        shown = service["state"] if service["state"] != "ready" or service["answers"] else "does not answer"
        yield (
            name,
            Text(shown, style=_COLOURS.get(shown, "red")),
            str(service["pid"] or ""),
            service["endpoint"],
            _age(service["uptime_s"]),
            service["restarts"],
            _size(service["memory_bytes"]),
        )


def _spark_row(spark: Mapping[str, Any] | None) -> Iterator[tuple[object, ...]]:
    if spark is None:
        return
    address = f"sc://localhost:{spark['connect_port']}"
    if spark["pid"]:
        yield "spark", "runs", str(spark["pid"]), address, "", "", _size(spark["memory_bytes"])
    else:
        yield "spark", "needs Java" if spark["missing"] else "starts on first need", "", "", "", "", ""


def _age(seconds: int | None) -> str:
    if seconds is None:
        return ""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _size(count: int) -> str:
    from deploy.spark_views import size

    return size(count) if count else ""
