"""What happens to each batch on the driver: its records are written or its rows given to a client, and counted."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from core_broker.client.consumer import TopicPartition
from streams.model.plan import Input
from streams.spark.queries.checkpoints import Checkpoint, Span
from streams.spark.queries.notes import Note, notes_folder, read_note
from streams.spark.queries.results import Results
from streams.spark.queries.sending import Output, Sender
from streams.spark.queries.spec import QuerySpec
from streams.spark.queries.staging import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Tallies(msgspec.Struct):
    """What a query has done since its job began."""

    batch: int = -1
    input_rows: int = 0
    records_out: int = 0
    undecodable: int = 0
    late: int = 0
    skipped: int = 0
    offsets: dict[TopicPartition, int] = {}


class Batches:
    """Takes the batches of one run; for one thread at a time."""

    def __init__(self, spec: QuerySpec, checkpoint: Checkpoint, target: Sender | Results, tallies: Tallies) -> None:
        self._spec = spec
        self._checkpoint = checkpoint
        self._target = target
        self._tallies = tallies
        self._needless: dict[TopicPartition, int] = {}
        self.turn = threading.Lock()
        """Held while a batch is written."""

    def take(self, frame: "DataFrame", number: int) -> None:
        """Write a batch: `frame` has what executors staged of it."""
        with self.turn:
            staged = tuple(Staged(row[0], None if row[1] is None else bytes(row[1]), row[2]) for row in frame.collect())
            spans = self._checkpoint.spans(number)
            notes = self._notes(spans)
            if isinstance(self._target, Results):
                count = self._target.add_batch(number, (batch for part in staged for batch in part.batches()))
            else:
                count = self._target.send(Output(batch=number, staged=staged, notes=notes, ends=_ends(spans)))
            self._clean(staged, spans, has_notes=bool(notes))
            self._count(number, count, notes, spans)
            for given in self._spec.plan.inputs:
                if given.is_internal and given.source.kind == "STREAM" and given.view in spans:
                    self._needless.update(spans[given.view].start)

    def take_needless(self) -> dict[TopicPartition, int]:
        """Up to where records of repartition topics are needed no more: not even if the last batch is repeated."""
        found, self._needless = self._needless, {}
        return found

    def _notes(self, spans: Mapping[str, Span]) -> tuple[Note, ...]:
        found: list[Note | None] = []
        for given in self._spec.plan.inputs:
            span = spans.get(given.view)
            if span is not None:
                folder = self._folder(given)
                found += [read_note(folder, partition, span.end[topic, partition]) for topic, partition in span.changed]
        return tuple(note for note in found if note is not None)

    def _clean(self, staged: tuple[Staged, ...], spans: Mapping[str, Span], *, has_notes: bool) -> None:
        for part in staged:
            if part.path is not None:
                self._checkpoint.delete(part.path)
        for given in self._spec.plan.inputs if has_notes else ():
            span = spans.get(given.view)
            if span is not None:
                # The notes at its start are needed if this batch is repeated.
                kept = {partition: offset for (_, partition), offset in span.start.items()}
                self._checkpoint.sweep(self._folder(given), kept)

    def _count(self, number: int, count: int, notes: tuple[Note, ...], spans: Mapping[str, Span]) -> None:
        tallies = self._tallies
        tallies.batch = number
        tallies.records_out += count
        for note in notes:
            tallies.undecodable += note.undecodable
            tallies.late += note.late
            tallies.skipped += note.skipped
        for span in spans.values():
            tallies.input_rows += sum(span.end[place] - span.start.get(place, 0) for place in span.changed)
            tallies.offsets.update(span.end)

    def _folder(self, given: Input) -> str:
        return notes_folder(self._spec.home, given.view, given.source.topic)


def _ends(spans: Mapping[str, Span]) -> dict[TopicPartition, int]:
    """How far a topic was read; by the input that is behind if several read it."""
    ends: dict[TopicPartition, int] = {}
    for span in spans.values():
        for place, end in span.end.items():
            ends[place] = min(end, ends.get(place, end))
    return ends
