"""The executor's half of a batch: reads ranges of offsets and writes staged files."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.api.errors import DataError
from connect.remote.pipeline import RemotePipeline
from connectors.spark.failures import MarkedFailure
from connectors.spark.fast_rows import FastRows
from connectors.spark.raw_records import record_at
from connectors.spark.record_rows import RecordRows
from connectors.spark.refusals import refused_schemas
from connectors.spark.rows import Rows, fingerprint
from connectors.spark.spec import SinkFolders, SinkSpec
from connectors.spark.staging import Staging
from core_broker.client.reader import OffsetOutOfRange
from core_broker.client.records import IncomingRecord, OutgoingRecord
from streams.spark.commits.entries import Counted, Entry, WrittenRange, pack_entries
from streams.spark.commits.staged_records import stage_records
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.fetching import RawBatch, fetch_range
from streams.spark.topics.ranges import OffsetRange

log = logging.getLogger(__name__)

_PIPELINES_MAX: Final = 8
_DEAD_LETTERS_MAX: Final = 10_000
"""How many dead letters are kept in memory before they are written."""
_pipelines: dict[str, RemotePipeline] = {}


def write_ranges(
    spec: SinkSpec, folders: SinkFolders, cluster: Cluster, ranges: Sequence[OffsetRange]
) -> Iterator[pa.RecordBatch]:
    """Write the records of some ranges, and yield what was written."""
    try:
        yield pack_entries(RangeWriter(spec, folders, cluster).write(ranges))
    except Exception as error:
        raise MarkedFailure(error) from error


class RangeWriter:
    """Writes the ranges of one Spark task."""

    def __init__(self, spec: SinkSpec, folders: SinkFolders, cluster: Cluster) -> None:
        self._spec = spec
        self._cluster = cluster
        self._folders = folders
        self._pipeline = _open_pipeline(spec.steps)
        self._fast = FastRows.of(self._pipeline, spec.config, spec.names)
        self._slow = RecordRows(spec.config, spec.names, has_transforms=self._pipeline.has_transforms)
        self._staging = Staging(folders.staging, spec.config)
        self._refused = refused_schemas(folders)
        self._dead_letters: list[OutgoingRecord] = []
        self._entries: list[Entry] = []
        self._rows = 0
        self._read = 0

    def write(self, ranges: Sequence[OffsetRange]) -> list[Entry]:
        """Write the records of some ranges; returns what was written."""
        began = time.process_time()
        for one in ranges:
            for raw in self._fetch(one):
                self._write_batch(raw, one)
            self._entries.append(WrittenRange(topic=one.topic, partition=one.partition, start=one.start, end=one.end))
        self._stage_dead_letters(at_least=1)
        counts = {
            **self._pipeline.taken_counters(),
            "sink_record_read": self._read,
            "sink_record_send": self._rows,
            "cpu_seconds": time.process_time() - began,
        }
        return [*self._entries, *self._staging.finish(), Counted(counts=counts)]

    def _fetch(self, one: OffsetRange) -> Iterator[RawBatch]:
        """The records of a range; if retention has deleted its beginning, those that are left."""
        try:
            yield from fetch_range(self._cluster, one)
        except OffsetOutOfRange as error:
            partition = (one.topic, one.partition)
            first = self._spec.open_admin().offsets([partition], "earliest")[partition]
            if first <= error.offset:
                raise
            extra = {"topic": one.topic, "partition": one.partition, "offset": error.offset, "first": first}
            log.warning("records were deleted before they could be read", extra=extra)
            if first < one.end:
                yield from fetch_range(self._cluster, replace(one, start=first))

    def _write_batch(self, raw: RawBatch, one: OffsetRange) -> None:
        count = len(raw.offsets)
        self._read += count
        record = partial(record_at, raw, topic=one.topic, partition=one.partition)
        left: np.ndarray[Any, Any] = np.arange(count, dtype=np.int64)
        if self._fast is not None and one.topic != self._spec.topics.redriven:
            made, left = self._fast.rows(raw, topic=one.topic, partition=one.partition)
            for rows in made:
                self._stage(rows, record)
        if left.size:
            self._write_records([record(int(index)) for index in left])
        self._stage_dead_letters(at_least=_DEAD_LETTERS_MAX)

    def _write_records(self, batch: list[IncomingRecord]) -> None:
        """Write records that go one by one through converters and transforms."""
        records = self._pipeline.records(batch)
        raws = {(raw.topic, raw.partition, raw.offset): index for index, raw in enumerate(batch)}

        def refused(index: int, error: Exception) -> None:
            self._pipeline.refused(batch[index], error)

        for rows in self._slow.of(records, raws, batch, refused=refused):
            self._stage(rows, batch.__getitem__)

    def _stage(self, rows: Rows, record: Callable[[int], IncomingRecord]) -> None:
        """Stage rows, unless their table has refused the schema."""
        reason = self._refused.get((rows.table, fingerprint(rows.schema))) if self._refused else None
        if reason is not None and rows.is_guessed and len(rows.sources) > 1:
            # A single row may have caused this schema, so each row gets one of its own.
            for index in rows.sources:
                self._write_records([record(int(index))])
            return
        try:
            if reason is not None:
                raise DataError(reason)
            self._staging.add(rows)
            self._rows += len(rows.sources)
        except DataError as error:
            for index in rows.sources:
                self._pipeline.refused(record(int(index)), error)

    def _stage_dead_letters(self, *, at_least: int) -> None:
        self._dead_letters += self._pipeline.taken_letters()
        if len(self._dead_letters) >= at_least:
            self._entries.append(stage_records(self._dead_letters, self._folders.staging))
            self._dead_letters = []


def close_pipelines() -> None:
    """Close the pipelines that are kept for the next batch."""
    while _pipelines:
        _pipelines.popitem()[1].close()


def _open_pipeline(steps: str) -> RemotePipeline:
    """Opened once per process, since Spark reuses its Python processes."""
    pipeline = _pipelines.get(steps)
    if pipeline is None:
        while len(_pipelines) >= _PIPELINES_MAX:
            _pipelines.pop(next(iter(_pipelines))).close()
        pipeline = _pipelines[steps] = RemotePipeline.open(steps)
    pipeline.taken_letters()
    pipeline.taken_counters()
    return pipeline
