"""What somebody wants to know when the platform is up: where everything is, and what to do now."""

from collections.abc import Iterator
from pathlib import Path

from rich.markup import escape

from deploy.launcher.request import DEFAULT_DATA
from deploy.launcher.state import PlatformState
from deploy.options import DEFAULT_BOOTSTRAP
from deploy.output import out, table
from deploy.stack import BY_NAME


def tell_summary(state: PlatformState, *, is_detached: bool) -> None:
    """Print endpoints, commands to copy, and how to go on."""
    table("", ["Service", "Endpoint", "What for"], list(_rows(state)))
    out.print("[bold]Try[/]")
    for command in commands(state):
        out.print(f"  {escape(command)}")
    place = _place_option(Path(state.data))
    out.print(
        f"\n[bold]Data[/]  {escape(state.data)}     [bold]Logs[/]  {escape(state.data)}/logs, or  caudal logs{place}"
    )
    how = f"caudal down{place}" if is_detached else f"Ctrl-C, or  caudal down{place}"
    out.print(f"[bold]Stop[/]  {how}     [bold]How it fares[/]  caudal status{place}")


def commands(state: PlatformState) -> list[str]:
    """Three commands to copy: something in, something out, and how things are; with what this platform has."""
    bootstrap = _bootstrap(state)
    cluster = "" if bootstrap == DEFAULT_BOOTSTRAP else f" --bootstrap {bootstrap}"
    services = state.services
    if "rest-proxy" in services:
        produce = (
            f"curl {services['rest-proxy'].endpoint}/topics/hello "
            "-H 'Content-Type: application/vnd.kafka.json.v2+json' "
            """-d '{"records": [{"value": {"greeting": "hello, river"}}]}'"""
        )
    else:
        produce = f"caudal topic produce hello 'hello, river'{cluster}"
    consume = f"caudal topic consume hello{cluster}"
    return [produce, consume, f"caudal status{_place_option(Path(state.data))}"]


def _rows(state: PlatformState) -> Iterator[tuple[str, str, str]]:
    for name, service in state.services.items():
        yield name, service.endpoint, BY_NAME[name].purpose
        if BY_NAME[name].metrics_port:
            yield "", service.metrics, "its metrics; the others have /metrics at their own ports"
    if state.spark is not None:
        address = f"sc://localhost:{state.spark.connect_port}"
        yield "spark", address, "Spark Connect for notebooks, once a sink or caudal spark has started it"


def _bootstrap(state: PlatformState) -> str:
    broker = state.services.get("broker")
    return broker.endpoint if broker is not None else state.elsewhere.get("broker", DEFAULT_BOOTSTRAP)


def _place_option(data: Path) -> str:
    """What has to be said about the folder, where it is not the one that is looked for anyway."""
    return "" if data == DEFAULT_DATA.absolute() else f" --data {data}"
