"""`caudal topic produce`: records from the command line, a file or stdin."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption, TopicArgument, timeout_option
from deploy.terminal.output import done, examples, failure, note, progress
from deploy.views.text import plural

if TYPE_CHECKING:
    from core_broker.client.errors import ClientError
    from core_broker.client.records import Delivery, OutgoingRecord

EPILOG = examples(
    'caudal topic produce orders "one" "two"',
    "caudal topic produce orders --key eu-1 --header source=web '{\"id\": 1}'",
    "caudal topic produce orders --file orders.txt --key-separator :",
    "caudal topic consume orders --format json | caudal topic produce copy --json",
)

app = Commands()


@dataclass(frozen=True, kw_only=True)
class ProducerOptions(ClusterOptions):
    """The same, with time enough for other brokers to replace one that has died."""

    timeout: Annotated[float, timeout_option("Cluster")] = 30.0


@app.command(epilog=EPILOG)
def produce(
    cluster: ProducerOptions,
    topic: TopicArgument,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[VALUE]...", help="Records to send; without any, lines of stdin.")
    ] = None,
    *,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Key of every record.", show_default=False)] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="Header of every record.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Partition; otherwise by key.", show_default=False)
    ] = None,
    timestamp: Annotated[
        int | None, typer.Option("--timestamp", metavar="MS", help="Time of every record.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Read lines from a file.", exists=True, dir_okay=False, show_default=False),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="What ends the key in a line.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Lines are JSON, as `consume --format json` writes.")] = False,
    null: Annotated[bool, typer.Option("--null", help="Send one record without value (a tombstone).")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send records to a topic: the arguments, the lines of a file, or the lines of stdin."""
    from core_broker.client.producer import Producer
    from core_broker.client.records import OutgoingRecord
    from deploy.views.records import parse_headers

    if null and values:
        raise typer.BadParameter("--null sends a record without value; give no VALUE with it")
    template = OutgoingRecord(
        topic=topic,
        value=None,
        key=key.encode() if key is not None else None,
        headers=parse_headers(header or []),
        partition=partition,
        timestamp_ms=timestamp,
    )
    if not values and not null and file is None and sys.stdin.isatty():
        note("type records, one per line; Ctrl-D ends")
    tally = _Tally(print_each=output is Output.JSON)
    with ExitStack() as stack:
        if null:
            records = iter([template])
        else:
            opened = stack.enter_context(file.open(encoding="utf-8")) if file and not values else sys.stdin
            lines = values or (line.rstrip("\r\n") for line in opened)
            records = _records(lines, template, key_separator, as_json=as_json)
        bar = stack.enter_context(progress(visible=file is not None))
        task = bar.add_task(f"sending to {topic}", total=None)
        producer = stack.enter_context(Producer(cluster.settings()))
        for record in records:
            producer.send(record, tally.add)
            bar.advance(task)
    tally.report(topic)


def _records(
    lines: Iterable[str], template: "OutgoingRecord", separator: str | None, *, as_json: bool
) -> "Iterator[OutgoingRecord]":
    from msgspec.structs import replace

    from deploy.views.records import from_json

    for count, line in enumerate(lines, 1):
        if as_json:
            try:
                found = from_json(line, template.topic)
            except ValueError as error:
                raise typer.BadParameter(f"line {count}: {error}") from None
            yield replace(
                found,
                key=found.key if template.key is None else template.key,
                headers=(*found.headers, *template.headers),
                partition=template.partition,
            )
        elif separator is not None and separator in line:
            key, _, value = line.partition(separator)
            yield replace(template, key=key.encode(), value=value.encode())
        else:
            yield replace(template, value=line.encode())


class _Tally:
    """Counts where records went, and keeps the first failure."""

    def __init__(self, *, print_each: bool) -> None:
        self._print_each = print_each
        self._ranges: dict[int, tuple[int, int]] = {}
        self._count = 0
        self._failures: list[ClientError] = []

    def add(self, outcome: "Delivery | ClientError") -> None:
        """Count one record; called by the producer."""
        if isinstance(outcome, Exception):
            self._failures.append(outcome)
            return
        self._count += 1
        first, last = self._ranges.get(outcome.partition, (outcome.offset, outcome.offset))
        self._ranges[outcome.partition] = (min(first, outcome.offset), max(last, outcome.offset))
        if self._print_each:
            written = {"topic": outcome.topic, "partition": outcome.partition, "offset": outcome.offset}
            sys.stdout.write(json.dumps(written) + "\n")

    def report(self, topic: str) -> None:
        """Say what was sent; raise the first failure."""
        if self._count:
            ranges = ", ".join(
                f"{partition}:{first}" + (f"–{last}" if last > first else "")
                for partition, (first, last) in sorted(self._ranges.items())
            )
            done(f"{plural(self._count, 'record')} to [bold]{topic}[/]  [dim]partition:offset {ranges}[/]")
        elif not self._failures:
            note("nothing to send")
        if self._failures:
            failure(f"{plural(len(self._failures), 'record')} could not be sent")
            raise self._failures[0]
