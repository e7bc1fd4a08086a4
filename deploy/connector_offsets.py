"""`caudal connector offsets`: how far connectors are, and how to change that."""

import json
import re
from typing import Annotated, Any, Final

import typer

from deploy.connect_options import (
    DEFAULT_CONNECT,
    ConnectOption,
    ConnectorArgument,
    ConnectTimeoutOption,
    connect_client,
)
from deploy.connector_files import read_text
from deploy.options import Output, OutputOption

app = typer.Typer(no_args_is_help=True, help="How far a connector is: show, set, reset.")

_PLACE: Final = re.compile(r"(?P<topic>[\w.-]+):(?P<partition>\d{1,10})=(?P<offset>\d{1,19})")


@app.command(
    epilog="Examples:\n\ncaudal connector offsets show orders\n\ncaudal connector offsets show orders -o json > at.json"
)
def show(
    name: ConnectorArgument,
    *,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Show how far a connector is: of sinks the topics' offsets, of sources whatever they keep."""
    from rich.markup import escape

    from deploy.output import note, print_json, table, waiting

    with connect_client(connect, timeout) as client, waiting(f"asking about {name}"):
        found = client.offsets(name)
    if output is Output.JSON:
        print_json({"offsets": found})
    elif found:
        table("", ["Part", "Offset"], [(_words(item["partition"]), _words(item["offset"])) for item in found])
    else:
        note(f"nothing is noted of {escape(name)} yet")


@app.command(
    name="set",
    epilog="Examples:\n\n"
    "caudal connector offsets set orders-to-file --at orders:0=42 --at orders:1=17\n\n"
    "caudal connector offsets set orders-from-file at.json\n\n"
    'The JSON is that of "show -o json"; an offset of null lets that part begin anew. '
    "The connector must be stopped:  caudal connector stop NAME",
)
def set_offsets(
    name: ConnectorArgument,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE|-]", help="JSON with the offsets; - reads stdin.", show_default=False),
    ] = None,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", metavar="TOPIC:PARTITION=OFFSET", help="Of a sink: read on from here. Repeat it for more."
        ),
    ] = None,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Change how far a connector is, which must be stopped."""
    from deploy.output import done, waiting

    if (file is None) == (not at):
        raise typer.BadParameter("say where it is to go on: either a FILE or --at TOPIC:PARTITION=OFFSET")
    offsets = [parse_place(text) for text in at] if at else parse_offsets(read_text(file or "-"))
    with connect_client(connect, timeout) as client, waiting(f"changing {name}"):
        told = client.alter_offsets(name, offsets)
    done(told)


@app.command(epilog="Examples:\n\ncaudal connector stop orders  then  caudal connector offsets reset orders --yes")
def reset(
    name: ConnectorArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Let a connector, which must be stopped, begin anew."""
    from deploy.output import done, waiting

    if not yes:
        typer.confirm(f"Forget how far {name} is? It reads everything again", abort=True, err=True)
    with connect_client(connect, timeout) as client, waiting(f"resetting {name}"):
        told = client.reset_offsets(name)
    done(told)


def parse_place(text: str) -> dict[str, Any]:
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
        raise typer.BadParameter(f"this is no JSON: {error}", param_hint="FILE") from None
    offsets = value.get("offsets") if isinstance(value, dict) else value
    if not isinstance(offsets, list) or not all(map(_is_offset, offsets)):
        raise typer.BadParameter('must look like {"offsets": [{"partition": {…}, "offset": {…}}]}', param_hint="FILE")
    return offsets


def _is_offset(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("partition"), dict) and "offset" in item


def _words(values: dict[str, Any] | None) -> str:
    """`kafka_topic=orders kafka_partition=0`."""
    if values is None:
        return "–"
    return " ".join(f"{key}={item if isinstance(item, str) else json.dumps(item)}" for key, item in values.items())
