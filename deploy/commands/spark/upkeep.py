"""`caudal spark compact`, `expire`, `reload`: upkeep of tables."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from deploy.commands.options import Commands, Output, OutputOption
from deploy.commands.spark.options import DryRunOption, EngineOptions, TableArgument
from deploy.terminal.output import done, examples, note, print_json, waiting
from deploy.views.text import printable

app = Commands()

COMPACT_EPILOG = examples(
    "caudal spark compact orders",
    "caudal spark compact orders --target-size 256m --dry-run",
    "Sinks may go on writing meanwhile, and queries reading.",
)
EXPIRE_EPILOG = examples(
    "caudal spark expire orders --older-than 30d",
    "caudal spark expire orders --older-than 2w --column ordered_at --dry-run",
)
RELOAD_EPILOG = examples(
    "caudal spark reload orders-to-spark --topic orders --partition 0 --from 1000 --to 2000",
    "The connector must run; it goes on with its own reading afterwards.",
)
_SPANS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@app.command(epilog=COMPACT_EPILOG)
def compact(
    options: EngineOptions,
    table: TableArgument,
    *,
    target_size: Annotated[
        str, typer.Option("--target-size", metavar="SIZE", help="Target size of files: 128m, 1g.")
    ] = "128m",
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Merge many small files into few large ones; the rows stay as they are."""
    target = parse_size(target_size)
    _run(options, "compact", {"table": table, "target_bytes": target, "dry_run": dry_run}, output=output)


@app.command(epilog=EXPIRE_EPILOG)
def expire(
    options: EngineOptions,
    table: TableArgument,
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="30d, 2w, 12h, 90m: rows older than that are removed.")
    ],
    column: Annotated[
        str | None,
        typer.Option("--column", help="The column with the time; by default _timestamp, the time of the record."),
    ] = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove old rows."""
    arguments: dict[str, Any] = {"table": table, "older_than_ms": parse_age(older_than), "dry_run": dry_run}
    arguments |= {} if column is None else {"column": column}
    _run(options, "expire", arguments, output=output)


@app.command(epilog=RELOAD_EPILOG)
def reload(
    options: EngineOptions,
    connector: Annotated[
        str, typer.Argument(metavar="CONNECTOR", help="The Spark sink that wrote the records.", show_default=False)
    ],
    *,
    topic: Annotated[str, typer.Option("--topic", "-t", help="The topic to read again.")],
    partition: Annotated[int, typer.Option("--partition", "-p", min=0, help="Its partition.")],
    start: Annotated[int, typer.Option("--from", metavar="OFFSET", min=0, help="The first offset.")],
    end: Annotated[int, typer.Option("--to", metavar="OFFSET", min=1, help="The offset to stop before.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Read a range of a topic again and replace its rows, with the connector's present configuration."""
    if start >= end:
        raise typer.BadParameter(f"--from {start} must be before --to {end}", param_hint="--from")
    arguments = {"connector": connector, "topic": topic, "partition": partition, "start": start, "end": end}
    _run(options, "reload", arguments, output=output)


def parse_age(text: str) -> int:
    """`30d` in milliseconds."""
    found = re.fullmatch(r"(\d{1,9})\s*([smhdw])", text.strip().lower())
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text!r} is not an age; write 30d, 2w, 12h, 90m or 60s", param_hint="--older-than")
    return int(found[1]) * _SPANS[found[2]]


def parse_size(text: str) -> int:
    """`128m` in bytes."""
    found = re.fullmatch(r"(\d{1,12})\s*([kmg]?)b?", text.strip().lower())
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text!r} is not a size; write 128m or 1g", param_hint="--target-size")
    return int(found[1]) * _SIZES[found[2]]


def _run(options: EngineOptions, operation: str, arguments: Mapping[str, Any], *, output: Output) -> None:
    with options.connect() as engine, waiting(f"{operation}: working"):
        result = engine.call(operation, **arguments)
    if output is Output.JSON:
        print_json(result)
    else:
        # One line with all counts that are not zero.
        counts = [
            f"{value:,} {key.replace('_', ' ')}"
            for key, value in (result or {}).items()
            if isinstance(value, int) and not isinstance(value, bool) and value
        ]
        text = escape(", ".join(counts) or "nothing to do")
        subject = escape(printable(str((result or {}).get("table", operation))))
        if arguments.get("dry_run"):
            note(f"{subject}: would be {text}")
        else:
            done(f"{subject}: {text}")
