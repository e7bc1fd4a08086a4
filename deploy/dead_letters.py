"""`caudal dlq`: the records that a connector could not take, why, and sending them again."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deploy.connect_options import (
    DEFAULT_CONNECT,
    ConnectOption,
    ConnectorArgument,
    ConnectTimeoutOption,
    connect_client,
)
from deploy.dead_letter_places import PlacesArgument, chosen, parse_letter_place
from deploy.options import Output, OutputOption

if TYPE_CHECKING:
    from deploy.connect_client import ConnectClient

app = typer.Typer(
    no_args_is_help=True, help="Dead letters: records that a connector could not take; list, show, redrive."
)

_SHOWN_MAX: Final = 10

StageOption = Annotated[
    str | None,
    typer.Option("--stage", help="Only those that failed at this stage, e.g. VALUE_CONVERTER.", show_default=False),
]
ExceptionOption = Annotated[
    str | None,
    typer.Option(
        "--exception", help="Only those that failed with this: its whole name, or the last part.", show_default=False
    ),
]
PartitionOption = Annotated[
    int | None,
    typer.Option("--partition", "-p", min=0, help="Only those of this partition.", show_default=False),
]
FromOption = Annotated[
    int | None, typer.Option("--from", min=0, metavar="OFFSET", help="Only those from here on.", show_default=False)
]


@app.command(
    name="list",
    epilog="Examples:\n\n"
    "caudal dlq list orders-to-database\n\n"
    "caudal dlq list orders-to-database --stage VALUE_CONVERTER --limit 1000 -o json",
)
def list_letters(
    name: ConnectorArgument,
    *,
    stage: StageOption = None,
    exception: ExceptionOption = None,
    partition: PartitionOption = None,
    from_: FromOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Most that are listed.")] = 100,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """List the dead letters of a connector: when, where and why each failed."""
    from rich.markup import escape

    from deploy.dead_letter_views import print_list
    from deploy.output import note, print_json, waiting

    query = _query(limit=limit, stage=stage, exception=exception, partition=partition, offset=from_)
    with connect_client(connect, timeout) as client, waiting(f"reading the dead letters of {name}"):
        page = client.dead_letters(name, query)
    if output is Output.JSON:
        print_json(page)
    elif page["records"]:
        print_list(page)
        if len(page["records"]) == limit:
            note(f"there may be more:  --limit {min(limit * 10, 1000)}, or --partition and --from")
    else:
        note(f"no dead letters in {escape(page['topic'])}")


@app.command(
    epilog="Examples:\n\n"
    "caudal dlq show orders-to-database 0-17\n\n"
    "caudal dlq show orders-to-database 0-17 0-18 -o json"
)
def show(
    name: ConnectorArgument,
    places: PlacesArgument = None,
    *,
    stage: StageOption = None,
    exception: ExceptionOption = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, help="Most that are shown, where no place is given.")
    ] = _SHOWN_MAX,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Show dead letters whole: key, value, headers, and the stack trace of what went wrong."""
    from rich.markup import escape

    from deploy.dead_letter_views import print_letter
    from deploy.output import failure, note, print_json, waiting

    wanted = [parse_letter_place(text) for text in places or []]
    with connect_client(connect, timeout) as client, waiting(f"reading the dead letters of {name}"):
        if wanted:
            found, missing = _at(client, name, wanted)
        else:
            query = _query(limit=limit, stage=stage, exception=exception)
            found, missing = client.dead_letters(name, query)["records"], []
    if output is Output.JSON:
        print_json(found)
    else:
        for letter in found:
            print_letter(letter)
    for place in missing:
        failure(
            f"there is no dead letter at {place}", [f"see those that are:  [bold]caudal dlq list {escape(name)}[/]"]
        )
    if missing:
        raise typer.Exit(1)
    if not found and output is Output.TABLE:
        note("no dead letters")


@app.command(
    epilog="Examples:\n\n"
    "caudal dlq redrive orders-to-database 0-17 0-18\n\n"
    "caudal dlq redrive orders-to-database --stage TASK_PUT --dry-run\n\n"
    "caudal dlq redrive orders-to-database --all --yes\n\n"
    "Each letter is sent once: what was sent before is left out. Records that fail again become new letters."
)
def redrive(
    name: ConnectorArgument,
    places: PlacesArgument = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    stage: StageOption = None,
    exception: ExceptionOption = None,
    partition: PartitionOption = None,
    from_: FromOption = None,
    to: Annotated[
        int | None,
        typer.Option("--to", min=0, metavar="OFFSET", help="Only those up to here, with it.", show_default=False),
    ] = None,
    maximum: Annotated[int, typer.Option("--max", min=1, max=100_000, help="Most that are sent.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell which ones it would be.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 60.0,
) -> None:
    """Send dead letters through their connector again, each once, when what made them fail is repaired."""
    from deploy.output import print_json

    selection = chosen(
        [parse_letter_place(text) for text in places or []],
        everything=everything,
        narrowed={
            "stage": stage,
            "exception": exception,
            "partition": partition,
            "from_offset": from_,
            "to_offset": to,
        },
    )
    body: dict[str, Any] = {"selection": selection, "max_records": maximum}
    with connect_client(connect, timeout) as client:
        if not (dry_run or yes):
            _confirm(client, name, body)
        outcome = _redriven(client, name, body, dry_run=dry_run)
    if output is Output.JSON:
        print_json(outcome)
    else:
        _tell(name, outcome, is_dry=dry_run)
    if outcome["failed"]:
        raise typer.Exit(1)


def _query(**given: str | int | None) -> dict[str, str | int]:
    return {key: value for key, value in given.items() if value is not None}


def _at(client: "ConnectClient", name: str, places: list[tuple[int, int]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The letters at these places, and the places that hold none."""
    found, missing = [], []
    for partition, offset in places:
        page = client.dead_letters(name, {"partition": partition, "offset": offset, "limit": 1})
        letter = next((item for item in page["records"] if item["offset"] == offset), None)
        if letter is None:
            missing.append(f"{partition}-{offset}")
        else:
            found.append(letter)
    return found, missing


def _redriven(client: "ConnectClient", name: str, body: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    from deploy.output import waiting

    with waiting(f"{'counting' if dry_run else 'sending'} dead letters of {name}"):
        return client.redrive(name, {**body, "dry_run": dry_run})


def _confirm(client: "ConnectClient", name: str, body: dict[str, Any]) -> None:
    from deploy.output import note, plural

    would = _redriven(client, name, body, dry_run=True)
    if not would["records"]:
        note(f"no dead letters to send: {plural(would['skipped'], 'letter')} sent before, or too often")
        raise typer.Exit(0)
    typer.confirm(f"Send {plural(len(would['records']), 'dead letter')} through {name} again?", abort=True, err=True)


def _tell(name: str, outcome: dict[str, Any], *, is_dry: bool) -> None:
    from rich.markup import escape

    from deploy.output import done, failure, note, out, plural

    for reason in outcome["failed"]:
        failure(f"not sent: {reason}")
    if is_dry:
        for place in outcome["records"]:
            out.print(f"{place['partition']}-{place['offset']}")
        note(f"{plural(len(outcome['records']), 'dead letter')} would be sent again, {outcome['skipped']} left out")
        return
    done(f"{plural(outcome['redriven'], 'dead letter')} of [bold]{escape(name)}[/] sent again")
    if outcome["skipped"]:
        note(f"{plural(outcome['skipped'], 'letter')} left out: sent before, or too often")
    if outcome["redriven"]:
        note(f"see whether any comes back:  caudal dlq list {escape(name)}")
