"""`caudal dlq`: records that a connector could not process, why, and sending them again."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands.options import (
    DEFAULT_CONNECT,
    ConnectOption,
    ConnectorArgument,
    ConnectTimeoutOption,
    Output,
    OutputOption,
    YesOption,
    connect_client,
)
from deploy.terminal.output import done, facts, failure, note, out, print_json, table, waiting
from deploy.views.dead_letters import Letter, facts_of, find_letters, parse_place, place_of, time_of
from deploy.views.text import plural, printable

if TYPE_CHECKING:
    from deploy.clients.connect import ConnectClient

app = typer.Typer(
    no_args_is_help=True, help="Dead letters: records that a connector could not process; list, show, redrive."
)

_SHOWN_MAX: Final = 10

PlacesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PARTITION-OFFSET]...", help="These letters, as `caudal dlq list` names them.", show_default=False
    ),
]

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
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="List at most this many.")] = 100,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """List the dead letters of a connector: when, where and why each failed."""
    query = _query(limit=limit, stage=stage, exception=exception, partition=partition, offset=from_)
    with connect_client(connect, timeout) as client, waiting(f"reading the dead letters of {name}"):
        page = client.dead_letters(name, query)
    if output is Output.JSON:
        print_json(page)
    elif page["records"]:
        _print_list(page)
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
        int, typer.Option("--limit", "-n", min=1, max=1000, help="Show at most this many, when no place is given.")
    ] = _SHOWN_MAX,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Show whole dead letters: key, value, headers, and the stack trace of the failure."""
    wanted = _places(places)
    with connect_client(connect, timeout) as client, waiting(f"reading the dead letters of {name}"):
        if wanted:
            found, missing = find_letters(client, name, wanted)
        else:
            query = _query(limit=limit, stage=stage, exception=exception)
            found, missing = client.dead_letters(name, query)["records"], []
    if output is Output.JSON:
        print_json(found)
    else:
        for letter in found:
            _print_letter(letter)
    for place in missing:
        failure(f"there is no dead letter at {place}", [f"see all of them:  `caudal dlq list {name}`"])
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
        typer.Option("--to", min=0, metavar="OFFSET", help="Only those up to here, inclusive.", show_default=False),
    ] = None,
    maximum: Annotated[int, typer.Option("--max", min=1, max=100_000, help="Send at most this many.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the letters that would be sent.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 60.0,
) -> None:
    """Send dead letters through their connector again, each once, once the cause of their failure is repaired."""
    filters = {"stage": stage, "exception": exception, "partition": partition, "from_offset": from_, "to_offset": to}
    selection = _selection(_places(places), filters, everything=everything)
    body: dict[str, Any] = {"selection": selection, "max_records": maximum}
    with connect_client(connect, timeout) as client:
        if not (dry_run or yes):
            _confirm(client, name, body)
        outcome = _redrive(client, name, body, dry_run=dry_run)
    if output is Output.JSON:
        print_json(outcome)
    else:
        _report(name, outcome, is_dry=dry_run)
    if outcome["failed"]:
        raise typer.Exit(1)


def _query(**given: str | int | None) -> dict[str, str | int]:
    return {key: value for key, value in given.items() if value is not None}


def _places(texts: list[str] | None) -> list[tuple[int, int]]:
    try:
        return [parse_place(text) for text in texts or []]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _selection(
    places: list[tuple[int, int]], filters: Mapping[str, str | int | None], *, everything: bool
) -> dict[str, Any]:
    """The selection that the worker is asked for; raises BadParameter when nothing is selected."""
    selection: dict[str, Any] = {key: value for key, value in filters.items() if value is not None}
    if places:
        selection["offsets"] = [{"partition": partition, "offset": offset} for partition, offset in places]
    if everything and selection:
        raise typer.BadParameter("--all cannot be combined with places or filters", param_hint="--all")
    if everything:
        return {"all": True}
    if not selection:
        raise typer.BadParameter("say which ones: places such as 0-17, --stage, --exception, --from, --to, or --all")
    return selection


def _print_list(page: Letter) -> None:
    rows = [
        (
            place_of(letter),
            time_of(letter),
            letter["error"]["stage"] or "–",
            (letter["error"]["exception"] or "–").rpartition(".")[2],
            printable((letter["error"]["message"] or "–").partition("\n")[0]),
            Text("yes", style="green") if letter["redriven"] else Text("no", style="dim"),
        )
        for letter in page["records"]
    ]
    table(f"Dead letters in {page['topic']}", ["Place", "Time", "Stage", "Exception", "Message", "Redriven"], rows)


def _print_letter(letter: Letter) -> None:
    facts(f"Dead letter {place_of(letter)}", [(name, printable(str(value))) for name, value in facts_of(letter)])
    if trace := letter["error"]["stacktrace"]:
        out.print(f"\n[dim]{escape(printable(trace.rstrip()))}[/]")


def _redrive(client: "ConnectClient", name: str, body: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    with waiting(f"{'counting' if dry_run else 'sending'} dead letters of {name}"):
        return client.redrive(name, {**body, "dry_run": dry_run})


def _confirm(client: "ConnectClient", name: str, body: dict[str, Any]) -> None:
    would = _redrive(client, name, body, dry_run=True)
    if not would["records"]:
        note(f"no dead letters to send: {plural(would['skipped'], 'letter')} sent before, or sent too often")
        raise typer.Exit(0)
    typer.confirm(f"Send {plural(len(would['records']), 'dead letter')} through {name} again?", abort=True, err=True)


def _report(name: str, outcome: dict[str, Any], *, is_dry: bool) -> None:
    for reason in outcome["failed"]:
        failure(f"not sent: {reason}")
    if is_dry:
        for place in outcome["records"]:
            out.print(f"{place['partition']}-{place['offset']}")
        note(f"{plural(len(outcome['records']), 'dead letter')} would be sent again, {outcome['skipped']} left out")
        return
    done(f"{plural(outcome['redriven'], 'dead letter')} of [bold]{escape(name)}[/] sent again")
    if outcome["skipped"]:
        note(f"{plural(outcome['skipped'], 'letter')} left out: sent before, or sent too often")
    if outcome["redriven"]:
        note(f"see whether any comes back:  caudal dlq list {escape(name)}")
