"""Parquet files wherever they are: reading, writing and what their footers say."""

import datetime as dt
import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streams.spark.files import FileInfo, Files
from streams.spark.types import conformed

BATCH_ROWS: Final = 64 * 1024
COMPRESSION: Final = "zstd"
ROW_GROUP_BYTES: Final = 64 << 20


def opened(files: Files, path: str) -> pq.ParquetFile:
    """A file to read; from file systems of others as a whole."""
    local = files.local(path)
    if local is not None:
        return pq.ParquetFile(local)
    return pq.ParquetFile(pa.BufferReader(files.read(path)))


def conformed_batches(files: Files, paths: Iterable[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of files one after the other, in exactly these columns."""
    for path in paths:
        with opened(files, path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                yield from conformed(pa.Table.from_batches([batch]), schema).to_batches()


def write_batches(files: Files, path: str, schema: pa.Schema, *, batches: Iterable[pa.RecordBatch]) -> int:
    """Write a file that is on the disk when this returns, with its folder; how many rows it has."""
    local = files.local(path)
    if local is None:
        sink = pa.BufferOutputStream()
        rows = _written(sink, schema, batches)
        files.write(path, sink.getvalue().to_pybytes())
        return rows
    local.parent.mkdir(parents=True, exist_ok=True)
    with local.open("wb") as file:
        rows = _written(file, schema, batches)
        file.flush()
        os.fsync(file.fileno())
    return rows


def rows_of(files: Files, found: Iterable[FileInfo]) -> int:
    """Rows of files by their footers."""
    total = 0
    for entry in found:
        with opened(files, entry.path) as file:
            total += file.metadata.num_rows
    return total


def bounds(metadata: pq.FileMetaData, column: str) -> tuple[Any, Any] | None:
    """Smallest and greatest value of a column by the footer; None when it does not say or some are null."""
    index = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == column), None)
    if index is None:
        return None
    found = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
    if not found or any(s is None or not s.has_min_max or s.null_count for s in found):
        return None
    return min(_plain(s.min) for s in found), max(_plain(s.max) for s in found)


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value


def _written(where: Any, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with pq.ParquetWriter(where, schema, compression=COMPRESSION) as writer:
        for group in _row_groups(batches):
            writer.write_table(pa.Table.from_batches(group, schema))
            rows += sum(batch.num_rows for batch in group)
    return rows


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches of many small files together, so that the new file has few large row groups."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
