"""The rows of a batch on their way to the driver: encoded by executors, handed over directly or, if many, in a file."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.ipc

from streams.formats.columns import ColumnEncoder
from streams.formats.json_values import to_json
from streams.formats.registry import RegistrySettings
from streams.model.plan import DELETED
from streams.model.sources import ROWTIME, Column, Source
from streams.spark.commits.executor_files import open_input, open_output
from streams.spark.queries.partitioning import windowed_partitions

STAGED: Final = "path string, data binary, count bigint"
"""The columns of what executors report."""
_STAGED: Final = pa.schema([("path", pa.string()), ("data", pa.binary()), ("count", pa.int64())])
_INLINE_BYTES: Final = 256 << 10
"""Up to this size, encoded rows of a task need no file."""
_ENCODERS_MAX: Final = 64
RECORDS: Final = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("partition", pa.int32())]
)
ROWS: Final = pa.schema([("row", pa.binary()), ("deleted", pa.bool_())])
Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Staged(msgspec.Struct, frozen=True):
    """What one task has staged: a file, or the data itself."""

    path: str | None
    data: bytes | None
    count: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The encoded rows."""
        if self.data is not None:
            yield from pa.ipc.open_stream(self.data)
        elif self.path is not None:
            with open_input(self.path) as stream:
                yield from pa.ipc.open_stream(stream)


@dataclass(frozen=True)
class RecordStage:
    """Encodes rows as records of a sink; runs on executors."""

    sink: Source
    registry: RegistrySettings
    folder: str
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the rows of one task."""
        encoder = _encoder(msgspec.json.encode(self.sink), msgspec.json.encode(self.registry))
        window = self.sink.window

        def encode(batch: pa.RecordBatch) -> pa.RecordBatch:
            keys, values = encoder.encode(batch)
            if window is None:
                places = pa.nulls(len(keys), pa.int32())
            else:
                places = windowed_partitions(keys, window, self.partitions)
            times = batch.column(ROWTIME)
            return pa.RecordBatch.from_arrays([keys, values, times, places], schema=RECORDS)

        return _stage(map(encode, _without_empty(batches)), RECORDS, self.folder)


@dataclass(frozen=True)
class RowStage:
    """Makes JSON of rows for a client; runs on executors."""

    columns: tuple[Column, ...]
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the rows of one task."""
        return _stage(map(self._encode, _without_empty(batches)), ROWS, self.folder)

    def _encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = json_rows(batch, self.columns)
        deleted = batch.column(DELETED) if DELETED in batch.schema.names else pa.nulls(len(rows), pa.bool_())
        data = pa.array([msgspec.json.encode(row) for row in rows], pa.binary())
        return pa.RecordBatch.from_arrays([data, deleted.fill_null(False)], schema=ROWS)


def json_rows(batch: pa.RecordBatch, columns: tuple[Column, ...]) -> list[list[Any]]:
    """Rows as lists of JSON values."""
    kinds = [column.sql_type for column in columns]
    values = [batch.column(column.name).to_pylist(maps_as_pydicts="lossy") for column in columns]
    return [[to_json(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in zip(*values, strict=True)]


@lru_cache(maxsize=_ENCODERS_MAX)
def _encoder(sink: bytes, registry: bytes) -> ColumnEncoder:
    """The encoder of a sink, kept in the process for the next task."""
    return ColumnEncoder(msgspec.json.decode(sink, type=Source), msgspec.json.decode(registry, type=RegistrySettings))


def _without_empty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _stage(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: str) -> Iterator[pa.RecordBatch]:
    """Hand encoded rows over: a few as they are, many in a file."""
    held: list[pa.RecordBatch] = []
    size = count = 0
    rest = iter(batches)
    for batch in rest:
        held.append(batch)
        size += batch.nbytes
        count += batch.num_rows
        if size > _INLINE_BYTES:
            break
    else:
        if count:
            yield _report(None, _inline(held, schema), count)
        return
    path = f"{folder}/{uuid.uuid4().hex}.arrows"
    with open_output(path) as stream, pa.ipc.new_stream(stream, schema) as writer:
        for batch in held:
            writer.write_batch(batch)
        for batch in rest:
            writer.write_batch(batch)
            count += batch.num_rows
    yield _report(path, None, count)


def _inline(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _report(path: str | None, data: bytes | None, count: int) -> pa.RecordBatch:
    columns = [pa.array([path], pa.string()), pa.array([data], pa.binary()), pa.array([count], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=_STAGED)
