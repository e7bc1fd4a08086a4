"""`caudal spark compact`, `expire`, `reload`: upkeep of tables."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from deploy.options import Output, OutputOption
from deploy.spark_options import (
    DryRunOption,
    SparkConfigOption,
    SparkSetOption,
    TableArgument,
    connected,
    spark_settings,
)

COMPACT_EPILOG = (
    "Examples:\n\ncaudal spark compact orders\n\ncaudal spark compact orders --target-size 256m --dry-run\n\n"
    "Sinks may go on writing meanwhile, and queries reading."
)
EXPIRE_EPILOG = (
    "Examples:\n\ncaudal spark expire orders --older-than 30d\n\n"
    "caudal spark expire orders --older-than 2w --column ordered_at --dry-run"
)
RELOAD_EPILOG = (
    "Examples:\n\ncaudal spark reload orders-to-spark --topic orders --partition 0 --from 1000 --to 2000\n\n"
    "The connector must run; it goes on with its own reading afterwards."
)
_SPANS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def compact(
    table: TableArgument,
    *,
    target_size: Annotated[
        str, typer.Option("--target-size", metavar="SIZE", help="How large files become: 128m, 1g.")
    ] = "128m",
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """Make few large files of many small ones; the rows stay as they are."""
    target = size_of(target_size)
    _do("compact", {"table": table, "target_bytes": target, "dry_run": dry_run}, config, settings, output=output)


def expire(
    table: TableArgument,
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="30d, 2w, 12h, 90m: rows older than that are removed.")
    ],
    column: Annotated[
        str | None,
        typer.Option("--column", help="The column with the time; not set: _timestamp, that of the record."),
    ] = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """Remove old rows."""
    arguments: dict[str, Any] = {"table": table, "older_than_ms": age_of(older_than), "dry_run": dry_run}
    arguments |= {} if column is None else {"column": column}
    _do("expire", arguments, config, settings, output=output)


def reload(
    connector: Annotated[
        str, typer.Argument(metavar="CONNECTOR", help="The Spark sink that wrote the records.", show_default=False)
    ],
    *,
    topic: Annotated[str, typer.Option("--topic", "-t", help="The topic to read again.")],
    partition: Annotated[int, typer.Option("--partition", "-p", min=0, help="Its partition.")],
    start: Annotated[int, typer.Option("--from", metavar="OFFSET", min=0, help="The first offset.")],
    end: Annotated[int, typer.Option("--to", metavar="OFFSET", min=1, help="The offset to stop before.")],
    output: OutputOption = Output.TABLE,
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """Read a range of a topic again and replace its rows: decoded and transformed as the connector is set today."""
    if start >= end:
        raise typer.BadParameter(f"--from {start} must be before --to {end}", param_hint="--from")
    arguments = {"connector": connector, "topic": topic, "partition": partition, "start": start, "end": end}
    _do("reload", arguments, config, settings, output=output)


def age_of(text: str) -> int:
    """`30d` in milliseconds."""
    found = re.fullmatch(r"(\d{1,9})\s*([smhdw])", text.strip().lower())
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text!r} is no age; write 30d, 2w, 12h, 90m or 60s", param_hint="--older-than")
    return int(found[1]) * _SPANS[found[2]]


def size_of(text: str) -> int:
    """`128m` in bytes."""
    found = re.fullmatch(r"(\d{1,12})\s*([kmg]?)b?", text.strip().lower())
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text!r} is no size; write 128m or 1g", param_hint="--target-size")
    return int(found[1]) * _SIZES[found[2]]


def _do(
    operation: str, arguments: Mapping[str, Any], config: Any, settings: list[str] | None, *, output: Output
) -> None:
    from deploy.output import print_json, waiting

    with connected(spark_settings(config, settings)) as engine, waiting(f"{operation}: working"):
        result = engine.call(operation, **arguments)
    if output is Output.JSON:
        print_json(result)
    else:
        _tell(operation, result or {}, is_dry=bool(arguments.get("dry_run")))


def _tell(operation: str, result: Mapping[str, Any], *, is_dry: bool) -> None:
    """What was done, in one line: only what is not nothing."""
    from rich.markup import escape

    from deploy.output import done, note
    from deploy.traces import printable

    told = [f"{value:,} {key.replace('_', ' ')}" for key, value in result.items() if _is_count(value) and value]
    text = ", ".join(told) or "nothing to do"
    subject = escape(printable(str(result.get("table", operation))))
    if is_dry:
        note(f"{subject}: would be {text}")
    else:
        done(f"{subject}: {escape(text)}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
