"""`caudal connector offsets`: how far connectors have read, and changing that."""

import json
import re
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from deploy.commands.connector.files import read_text
from deploy.commands.options import Commands, ConnectorArgument, Output, OutputOption, WorkerOptions, YesOption
from deploy.terminal.output import done, examples, note, print_json, table, waiting

app = Commands(no_args_is_help=True, help="Offsets of a connector, how far it has read: show, set, reset.")

_PLACE: Final = re.compile(r"(?P<topic>[\w.-]+):(?P<partition>\d{1,10})=(?P<offset>\d{1,19})")


@app.command(
    epilog=examples("caudal connector offsets show orders", "caudal connector offsets show orders -o json > at.json")
)
def show(worker: WorkerOptions, name: ConnectorArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Show how far a connector has read: topic offsets of a sink, whatever a source keeps."""
    with worker.client() as client, waiting(f"asking about {name}"):
        found = client.offsets(name)
    if output is Output.JSON:
        print_json({"offsets": found})
    elif found:
        table("", ["Part", "Offset"], [(_words(item["partition"]), _words(item["offset"])) for item in found])
    else:
        note(f"{escape(name)} has no offsets yet")


@app.command(
    name="set",
    epilog=examples(
        "caudal connector offsets set orders-to-file --at orders:0=42 --at orders:1=17",
        "caudal connector offsets set orders-from-file at.json",
        'The JSON is that of "show -o json"; an offset of null makes that part start over. '
        "The connector must be stopped:  caudal connector stop NAME",
    ),
)
def set_offsets(
    worker: WorkerOptions,
    name: ConnectorArgument,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE|-]", help="JSON with the offsets; - reads stdin.", show_default=False),
    ] = None,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="TOPIC:PARTITION=OFFSET", help="For a sink: continue here. Repeat it for more."),
    ] = None,
) -> None:
    """Change the offsets of a connector, which must be stopped."""
    if (file is None) == (not at):
        raise typer.BadParameter("give the offsets: either a FILE or --at TOPIC:PARTITION=OFFSET")
    offsets = [parse_sink_offset(text) for text in at] if at else parse_offsets(read_text(file or "-"))
    with worker.client() as client, waiting(f"changing {name}"):
        message = client.alter_offsets(name, offsets)
    done(message)


@app.command(epilog=examples("caudal connector stop orders  then  caudal connector offsets reset orders --yes"))
def reset(worker: WorkerOptions, name: ConnectorArgument, *, yes: YesOption = False) -> None:
    """Forget the offsets of a connector, which must be stopped: it starts over."""
    if not yes:
        typer.confirm(f"Forget the offsets of {name}? It reads everything again", abort=True, err=True)
    with worker.client() as client, waiting(f"resetting {name}"):
        message = client.reset_offsets(name)
    done(message)


def parse_sink_offset(text: str) -> dict[str, Any]:
    """Read `TOPIC:PARTITION=OFFSET`; raises BadParameter."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} must look like TOPIC:PARTITION=OFFSET, e.g. orders:0=42", param_hint="--at")
    return {
        "partition": {"kafka_topic": match["topic"], "kafka_partition": int(match["partition"])},
        "offset": {"kafka_offset": int(match["offset"])},
    }


def parse_offsets(text: str) -> list[dict[str, Any]]:
    """Read `{"offsets": […]}`, or the list alone; raises BadParameter."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="FILE") from None
    offsets = value.get("offsets") if isinstance(value, dict) else value
    if not isinstance(offsets, list) or not all(
        isinstance(item, dict) and isinstance(item.get("partition"), dict) and "offset" in item for item in offsets
    ):
        raise typer.BadParameter('must look like {"offsets": [{"partition": {…}, "offset": {…}}]}', param_hint="FILE")
    return offsets


def _words(values: dict[str, Any] | None) -> str:
    """`kafka_topic=orders kafka_partition=0`."""
    if values is None:
        return "–"
    return " ".join(f"{key}={item if isinstance(item, str) else json.dumps(item)}" for key, item in values.items())
