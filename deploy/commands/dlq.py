"""`caudal dlq`: records that a connector could not process, why, and sending them again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands.options import (
    Commands,
    ConnectorArgument,
    Output,
    OutputOption,
    WorkerOptions,
    YesOption,
    timeout_option,
)
from deploy.terminal.output import done, examples, facts, failure, note, out, print_json, table, waiting
from deploy.views.dead_letters import describe_letter, find_letters, letter_name, letter_time, parse_letter
from deploy.views.text import plural, printable

if TYPE_CHECKING:
    from deploy.clients.connect import ConnectClient

app = Commands(
    no_args_is_help=True, help="Dead letters: records that a connector could not process; list, show, redrive."
)

_SHOWN_MAX: Final = 10


@dataclass(frozen=True, kw_only=True)
class PatientWorkerOptions(WorkerOptions):
    """A worker that may take longer, because it sends many records."""

    timeout: Annotated[float, timeout_option("Worker")] = 60.0


LettersArgument = Annotated[
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
    epilog=examples(
        "caudal dlq list orders-to-database",
        "caudal dlq list orders-to-database --stage VALUE_CONVERTER --limit 1000 -o json",
    ),
)
def list_letters(
    worker: WorkerOptions,
    name: ConnectorArgument,
    *,
    stage: StageOption = None,
    exception: ExceptionOption = None,
    partition: PartitionOption = None,
    from_: FromOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="List at most this many.")] = 100,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the dead letters of a connector: when, where and why each failed."""
    query = _query(limit=limit, stage=stage, exception=exception, partition=partition, offset=from_)
    with worker.client() as client, waiting(f"reading the dead letters of {name}"):
        page = client.dead_letters(name, query)
    if output is Output.JSON:
        print_json(page)
    elif page["records"]:
        rows = [
            (
                letter_name(letter),
                letter_time(letter),
                letter["error"]["stage"] or "–",
                (letter["error"]["exception"] or "–").rpartition(".")[2],
                printable((letter["error"]["message"] or "–").partition("\n")[0]),
                Text("yes", style="green") if letter["redriven"] else Text("no", style="dim"),
            )
            for letter in page["records"]
        ]
        columns = ["Letter", "Time", "Stage", "Exception", "Message", "Redriven"]
        table(f"Dead letters in {page['topic']}", columns, rows)
        if len(page["records"]) == limit:
            note(f"there may be more:  --limit {min(limit * 10, 1000)}, or --partition and --from")
    else:
        note(f"no dead letters in {escape(page['topic'])}")


@app.command(
    epilog=examples("caudal dlq show orders-to-database 0-17", "caudal dlq show orders-to-database 0-17 0-18 -o json")
)
def show(
    worker: WorkerOptions,
    name: ConnectorArgument,
    letters: LettersArgument = None,
    *,
    stage: StageOption = None,
    exception: ExceptionOption = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, help="Show at most this many, unless letters are named.")
    ] = _SHOWN_MAX,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show whole dead letters: key, value, headers, and the stack trace of the failure."""
    wanted = _parse_letters(letters)
    with worker.client() as client, waiting(f"reading the dead letters of {name}"):
        if wanted:
            found, missing = find_letters(client, name, wanted)
        else:
            query = _query(limit=limit, stage=stage, exception=exception)
            found, missing = client.dead_letters(name, query)["records"], []
    if output is Output.JSON:
        print_json(found)
    else:
        for letter in found:
            pairs = [(key, printable(str(value))) for key, value in describe_letter(letter)]
            facts(f"Dead letter {letter_name(letter)}", pairs)
            if trace := letter["error"]["stacktrace"]:
                out.print(f"\n[dim]{escape(printable(trace.rstrip()))}[/]")
    for text in missing:
        failure(f"there is no dead letter {text}", [f"see all of them:  `caudal dlq list {name}`"])
    if missing:
        raise typer.Exit(1)
    if not found and output is Output.TABLE:
        note("no dead letters")


@app.command(
    epilog=examples(
        "caudal dlq redrive orders-to-database 0-17 0-18",
        "caudal dlq redrive orders-to-database --stage TASK_PUT --dry-run",
        "caudal dlq redrive orders-to-database --all --yes",
        "Each letter is sent once: what was sent before is left out. Records that fail again become new letters.",
    )
)
def redrive(
    worker: PatientWorkerOptions,
    name: ConnectorArgument,
    letters: LettersArgument = None,
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
) -> None:
    """Send dead letters through their connector again, each once, once the cause of their failure is repaired."""
    selection = _query(stage=stage, exception=exception, partition=partition, from_offset=from_, to_offset=to)
    if wanted := _parse_letters(letters):
        selection["offsets"] = [{"partition": partition, "offset": offset} for partition, offset in wanted]
    if everything and selection:
        raise typer.BadParameter("--all cannot be combined with letters or filters", param_hint="--all")
    if not everything and not selection:
        raise typer.BadParameter("say which ones: letters such as 0-17, --stage, --exception, --from, --to, or --all")
    body: dict[str, Any] = {"selection": {"all": True} if everything else selection, "max_records": maximum}
    with worker.client() as client:
        if not (dry_run or yes):
            would = _redrive(client, name, body, dry_run=True)
            if not would["records"]:
                note(f"no dead letters to send: {plural(would['skipped'], 'letter')} sent before, or sent too often")
                return
            count = plural(len(would["records"]), "dead letter")
            typer.confirm(f"Send {count} through {name} again?", abort=True, err=True)
        outcome = _redrive(client, name, body, dry_run=dry_run)
    if output is Output.JSON:
        print_json(outcome)
    else:
        _report(name, outcome, is_dry=dry_run)
    if outcome["failed"]:
        raise typer.Exit(1)


def _query(**given: str | int | None) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


def _parse_letters(texts: list[str] | None) -> list[tuple[int, int]]:
    try:
        return [parse_letter(text) for text in texts or []]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _redrive(client: "ConnectClient", name: str, body: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    with waiting(f"{'counting' if dry_run else 'sending'} dead letters of {name}"):
        return client.redrive(name, {**body, "dry_run": dry_run})


def _report(name: str, outcome: dict[str, Any], *, is_dry: bool) -> None:
    for reason in outcome["failed"]:
        failure(f"not sent: {reason}")
    if is_dry:
        for letter in outcome["records"]:
            out.print(letter_name(letter))
        note(f"{plural(len(outcome['records']), 'dead letter')} would be sent again, {outcome['skipped']} left out")
        return
    done(f"{plural(outcome['redriven'], 'dead letter')} of [bold]{escape(name)}[/] sent again")
    if outcome["skipped"]:
        note(f"{plural(outcome['skipped'], 'letter')} left out: sent before, or sent too often")
    if outcome["redriven"]:
        note(f"see whether any fails again:  caudal dlq list {escape(name)}")
