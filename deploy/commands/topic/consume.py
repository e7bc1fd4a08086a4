"""`caudal topic consume`: read a topic from anywhere, in any form."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.commands import completion
from deploy.commands.options import (
    POSITION_HELP,
    ClusterOptions,
    Commands,
    Output,
    OutputOption,
    PartitionsOption,
    TopicArgument,
)
from deploy.terminal.output import examples, progress

if TYPE_CHECKING:
    from core_broker.client.consumer import Consumer, TopicPartition
    from core_broker.client.records import IncomingRecord

_BATCH = 500
_WAIT_MS = 200

EPILOG = examples(
    "caudal topic consume orders                          everything up to now",
    "caudal topic consume orders --from -10 --follow      the last ten of each partition, then whatever comes",
    "caudal topic consume orders --from 2h --format json  what came in the last two hours, for a program",
    "caudal topic consume orders --from 2026-11-16T10:30 --partition 0 --count 5",
    "caudal topic consume orders --format '{offset} {key}'",
    "caudal topic consume orders --group billing --follow  as a member of a group, committing",
)

app = Commands()


@app.command(epilog=EPILOG)
def consume(
    cluster: ClusterOptions,
    topic: TopicArgument,
    *,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="POSITION",
            help=POSITION_HELP,
        ),
    ] = "beginning",
    partition: PartitionsOption = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this many records.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more at the end; Ctrl-C ends.")] = False,
    style: Annotated[
        str,
        typer.Option(
            "--format", "-F", metavar="FORMAT", help="text, value, json, hex, or a template like '{key} {value}'."
        ),
    ] = "text",
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            help="Read as a member of this group and commit.",
            show_default=False,
            autocompletion=completion.groups,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Read records of a topic: up to its present end, or for ever with --follow."""
    from core_broker.client.consumer import Consumer
    from core_broker.service.clock import SystemClock
    from deploy.views.positions import parse_position, resolve
    from deploy.views.records import formatter

    try:
        write = formatter("json" if output is Output.JSON else style)
        if style == "text" and output is Output.TABLE and sys.stdout.isatty():
            write = _coloured_line
        position = parse_position(start, SystemClock())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    settings = cluster.settings()
    follow = follow or position.kind == "end"
    with Consumer(settings, group_id=group, from_beginning=position.kind != "end") as consumer:
        partitions = [index for index in consumer.partitions_of(topic) if not partition or index in partition]
        if group:
            consumer.subscribe([topic])
            reader = _Reader(consumer, ends={}, follow=follow, commits=True)
        else:
            bounds = {(topic, index): consumer.bounds(topic, index) for index in partitions}
            timed = consumer.offsets_at(list(bounds), position.value) if position.kind == "time" else {}
            starts = {
                item: resolve(position, first=first, end=end, timed=timed.get(item, -1))
                for item, (first, end) in bounds.items()
            }
            ends = {item: end for item, (_, end) in bounds.items()}
            consumer.assign(starts)
            reader = _Reader(consumer, ends=ends, starts=starts, follow=follow)
        reader.run(write, count)


class _Reader:
    """Reads until the count is reached, or every partition's end unless it follows."""

    def __init__(
        self,
        consumer: "Consumer",
        *,
        ends: "dict[TopicPartition, int]",
        starts: "dict[TopicPartition, int] | None" = None,
        follow: bool = False,
        commits: bool = False,
    ) -> None:
        self._consumer = consumer
        self._starts = starts or {}
        self._ends = ends
        self._follow = follow
        self._commits = commits
        self._next: dict[TopicPartition, int] = dict(self._starts)
        self.read = 0

    def run(self, write: "Callable[[IncomingRecord], str]", count: int | None) -> None:
        """Print records until there is a reason to stop."""
        # A progress bar helps only if the records themselves are not on the screen.
        total = count or sum(self._ends[item] - start for item, start in self._starts.items())
        with progress(visible=not sys.stdout.isatty() and not self._follow) as bar:
            task = bar.add_task("reading", total=total or None)
            while not self._is_done(count):
                wanted = _BATCH if count is None else min(_BATCH, count - self.read)
                records = self._consumer.read(wanted, timeout_ms=_WAIT_MS)
                if not self._follow:  # leave out what has arrived since the start
                    records = [
                        item
                        for item in records
                        if item.offset < self._ends.get((item.topic, item.partition), item.offset + 1)
                    ]
                for record in records:
                    sys.stdout.write(write(record) + "\n")
                sys.stdout.flush()
                self.read += len(records)
                positions = {(record.topic, record.partition): record.offset + 1 for record in records}
                self._next.update(positions)
                if self._commits and positions:
                    self._consumer.commit(positions)
                bar.update(task, completed=self.read)

    def _is_done(self, count: int | None) -> bool:
        if count is not None and self.read >= count:
            return True
        if self._follow:
            return False
        if self._commits:
            assigned = set(self._consumer.assigned())
            return bool(assigned) and assigned <= self._consumer.ended
        # The last offsets may have no records: they are transaction markers, or were compacted away.
        return all(self._next[item] >= end or item in self._consumer.ended for item, end in self._ends.items())


def _coloured_line(record: "IncomingRecord") -> str:
    """A record for a terminal; without rich, which is too slow for thousands of lines."""
    from deploy.views.records import line_parts

    colours = ("\033[2m", "\033[36m", "\033[33m", "", "\033[2m")
    parts = zip(colours, line_parts(record), strict=True)
    return "".join(f"{colour}{part}\033[0m" if colour and part else part for colour, part in parts)
