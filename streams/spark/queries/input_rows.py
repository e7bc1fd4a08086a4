"""Reads ranges of an input as the rows of its view, on executors: decoded, with their times, without those too late."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core_broker.client.records import OutgoingRecord
from streams.errors import StreamsError
from streams.formats.columns import ColumnDecoder, Failure
from streams.formats.nulls import without_null_documents
from streams.formats.registry import RegistrySettings
from streams.model.plan import DELETED, STREAM_TIME, TIME, Input
from streams.model.sources import ROWOFFSET, ROWPARTITION, ROWTIME, OnError, Source
from streams.spark.commits.entries import WrittenRecords
from streams.spark.commits.staged_records import stage_records
from streams.spark.queries.letters import CONVERTERS, TRANSFORMATION, dead_letter
from streams.spark.queries.notes import Note, letters_folder, notes_folder, write_note
from streams.spark.queries.rowtimes import NEVER, Mask, RowTimes, Times, late_rows, stream_times
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.decoded import cast_column
from streams.spark.topics.fetching import RawBatch, read_range
from streams.spark.topics.ranges import OffsetRange
from streams.spark.topics.rows import timestamps

_LETTERS_PER_FILE: Final = 5_000
_DECODERS_MAX: Final = 64


class Undecodable(StreamsError):
    """A record is not what its source declares, and the query is to fail then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRows:
    """What executors need to read an input."""

    input: Input
    cluster: Cluster
    registry: RegistrySettings
    schema: pa.Schema
    """Exactly the columns that Spark expects."""
    query: str = ""
    home: str = ""
    """Where notes are left; empty if there are none to leave, as for a pull query."""
    on_error: OnError = "skip"
    dead_letter_topic: str | None = None
    timeout_ms: int = 120_000
    goes_on_after_loss: bool = False
    """Whether records that were deleted before they were read are left out, with a warning; else that is an error."""

    @property
    def follows_time(self) -> bool:
        """Whether it must be known what the stream time is."""
        return self.input.lateness is not None or STREAM_TIME in self.schema.names

    @property
    def notes(self) -> str:
        """The folder of its notes."""
        return notes_folder(self.home, self.input.view, self.input.source.topic)

    def read(self, wanted: OffsetRange, stream_time_ms: int | None) -> Iterator[pa.RecordBatch]:
        """The rows of a range; `stream_time_ms` is that of earlier batches."""
        task = _Task(self, wanted, NEVER if stream_time_ms is None else stream_time_ms)
        strict = not self.goes_on_after_loss
        raw = read_range(self.cluster, wanted, timeout_ms=self.timeout_ms, fail_on_data_loss=strict)
        for batch in raw:
            yield task.rows(batch)
        task.finish()


@dataclass(slots=True)
class _Task:
    work: InputRows
    place: OffsetRange
    stream_time: int
    undecodable: int = 0
    late: int = 0
    skipped: int = 0
    _letters: list[OutgoingRecord] = field(default_factory=list)
    _files: list[WrittenRecords] = field(default_factory=list)

    def rows(self, batch: RawBatch) -> pa.RecordBatch:
        work, source = self.work, self.work.input.source
        values = without_null_documents(batch.values, source.value_format)
        decoded = _decoder(msgspec.json.encode(source), msgspec.json.encode(work.registry)).decode(
            batch.keys, values, batch.headers
        )
        good = np.ones(len(batch), np.bool_)
        for failure in decoded.failures:
            good[failure.row] = False
            self._refuse(batch, failure)
        missing = values if source.kind == "STREAM" else batch.keys
        if missing.null_count:
            absent = _mask(missing.is_null()) & good
            self.skipped += int(absent.sum())
            good &= ~absent
        times = RowTimes(source.timestamp).of(batch.timestamps_ms, decoded.columns)
        if times.null_count:
            self._refuse_timeless(batch, _mask(times.is_null()) & good)
            good &= _mask(times.is_valid())
        columns = {**decoded.columns, ROWTIME: times, ROWOFFSET: batch.offsets}
        if source.kind == "TABLE":
            columns[DELETED] = values.is_null()
        if work.follows_time:
            good, columns[STREAM_TIME] = self._without_late(batch, times, good)
        return self._batch(columns, times, good, len(batch))

    def finish(self) -> None:
        """Leave a note if there is anything to tell."""
        work, place = self.work, self.place
        if not work.home:
            return
        self._stage_letters()
        counts = self.undecodable + self.late + self.skipped
        if not counts and not work.follows_time:
            return
        note = Note(
            stream_time_ms=None if self.stream_time == NEVER else self.stream_time,
            undecodable=self.undecodable,
            late=self.late,
            skipped=self.skipped,
            letters=tuple(self._files),
        )
        write_note(work.notes, place.partition, place.end, note)

    def _without_late(self, batch: RawBatch, times: pa.Array, good: Mask) -> tuple[Mask, pa.Array]:
        """Which rows are not late, and the stream time at each row."""
        numbers: Times = times.fill_null(NEVER).to_numpy(zero_copy_only=False)
        stream = stream_times(np.where(good, numbers, NEVER), self.stream_time)
        if len(stream):
            self.stream_time = int(stream[-1])
        lateness = self.work.input.lateness
        if lateness is not None:
            late = late_rows(numbers, stream, lateness) & good
            for row in np.flatnonzero(late).tolist():
                self.late += 1
                behind = int(stream[row]) - int(numbers[row])
                message = (
                    f"The record is {behind} ms behind the stream time {int(stream[row])}, and its window is closed"
                )
                self._keep(batch, row, TRANSFORMATION, "LateRecord", message)
            good = good & ~late
        return good, pa.array(stream, pa.int64())

    def _refuse(self, batch: RawBatch, failure: Failure) -> None:
        self.undecodable += 1
        if self.work.on_error == "fail":
            offset = batch.offsets[failure.row].as_py()
            where = f"The {failure.part} at offset {offset} of {self.place.topic}-{self.place.partition}"
            raise Undecodable(f"{where} cannot be decoded: {failure.message}")
        self._keep(batch, failure.row, CONVERTERS[failure.part], "DecodeError", failure.message)

    def _refuse_timeless(self, batch: RawBatch, rows: Mask) -> None:
        column = self.work.input.source.timestamp
        name = "the record" if column is None else f"column {column.column}"
        for row in np.flatnonzero(rows).tolist():
            self.undecodable += 1
            self._keep(batch, row, TRANSFORMATION, "InvalidTimestamp", f"There is no valid timestamp in {name}")

    def _keep(self, batch: RawBatch, row: int, stage: str, kind: str, message: str) -> None:
        work = self.work
        if work.on_error != "dlq" or work.dead_letter_topic is None or not work.home:
            return
        self._letters.append(
            dead_letter(
                batch,
                row,
                self.place,
                topic=work.dead_letter_topic,
                query=work.query,
                stage=stage,
                kind=kind,
                message=message,
            )
        )
        if len(self._letters) >= _LETTERS_PER_FILE:
            self._stage_letters()

    def _stage_letters(self) -> None:
        if self._letters:
            folder = letters_folder(self.work.notes, self.place.partition, self.place.end)
            self._files.append(stage_records(self._letters, folder))
            self._letters.clear()

    def _batch(self, columns: dict[str, pa.Array], times: pa.Array, good: Mask, count: int) -> pa.RecordBatch:
        schema = self.work.schema
        if TIME in schema.names:
            columns[TIME] = timestamps(times)
        if ROWPARTITION in schema.names:
            columns[ROWPARTITION] = pa.repeat(pa.scalar(self.place.partition, pa.int32()), count)
        arrays = [cast_column(columns[field.name], field.type) for field in schema]
        found = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return found if good.all() else found.filter(pa.array(good))


def _mask(column: pa.Array) -> Mask:
    found: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found


@lru_cache(maxsize=_DECODERS_MAX)
def _decoder(source: bytes, registry: bytes) -> ColumnDecoder:
    """The decoder of a source, kept in the process for the next task."""
    return ColumnDecoder(msgspec.json.decode(source, type=Source), msgspec.json.decode(registry, type=RegistrySettings))
