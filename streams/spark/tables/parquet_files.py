"""Parquet files on any file system: reading, writing, and the statistics in their footers."""

import datetime as dt
import json
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
# The limits of Delta's own writers for the columns and texts that statistics describe.
_STATS_COLUMNS_MAX: Final = 32
_STATS_TEXT_CHARACTERS_MAX: Final = 64


def open_parquet(files: Files, path: str) -> pq.ParquetFile:
    """A file to read; one on another file system is fetched whole."""
    local = files.local(path)
    if local is not None:
        return pq.ParquetFile(local)
    return pq.ParquetFile(pa.BufferReader(files.read(path)))


def conformed_batches(files: Files, paths: Iterable[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of files, in exactly these columns."""
    for path in paths:
        with open_parquet(files, path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                yield from conformed(pa.Table.from_batches([batch]), schema).to_batches()


def write_batches(files: Files, path: str, schema: pa.Schema, *, batches: Iterable[pa.RecordBatch]) -> int:
    """Write a file, and its folder, to the disk; returns the number of rows."""
    local = files.local(path)
    if local is None:
        sink = pa.BufferOutputStream()
        rows = _write_row_groups(sink, schema, batches)
        files.write(path, sink.getvalue().to_pybytes())
        return rows
    local.parent.mkdir(parents=True, exist_ok=True)
    with local.open("wb") as file:
        rows = _write_row_groups(file, schema, batches)
        file.flush()
        os.fsync(file.fileno())
    return rows


def move_file(files: Files, source: str, target: str, *, columns: pa.Schema | None) -> None:
    """Move a file, rewritten in these columns unless None; after a kill at any moment, the same call finishes it."""
    if columns is None or not files.exists(source):
        files.move(source, target)
        return
    rewritten = f"{source}.fitting"
    write_batches(files, rewritten, columns, batches=conformed_batches(files, [source], columns))
    files.move(rewritten, target)
    files.delete(source)


def count_rows(files: Files, found: Iterable[FileInfo]) -> int:
    """The number of rows of files, from their footers."""
    total = 0
    for entry in found:
        with open_parquet(files, entry.path) as file:
            total += file.metadata.num_rows
    return total


def bounds(metadata: pq.FileMetaData, column: str) -> tuple[Any, Any] | None:
    """Minimum and maximum of a column from the footer; None if they are missing or some values are null."""
    index = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == column), None)
    if index is None:
        return None
    found = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
    if not found or any(s is None or not s.has_min_max or s.null_count for s in found):
        return None
    return min(_plain(s.min) for s in found), max(_plain(s.max) for s in found)


def delta_stats(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """The statistics of a file for Delta's log, as JSON: readers skip files by its rows, bounds and nulls."""
    smallest: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        # Fields of structs have a dotted path, and are left out.
        if len(nulls) >= _STATS_COLUMNS_MAX or name not in schema.names or "." in name:
            continue
        parts = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if not parts or any(part is None or not part.has_null_count for part in parts):
            continue
        nulls[name] = sum(part.null_count for part in parts)
        if all(part.has_min_max for part in parts):
            low = _delta_value(min(part.min for part in parts))
            high = _delta_value(max(part.max for part in parts))
            if low is not None and high is not None:
                smallest[name], greatest[name] = low, high
    content = {"numRecords": metadata.num_rows, "minValues": smallest, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(content)


def _delta_value(value: Any) -> Any:
    """A bound as Delta writes it; None for values that are better left out."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value if len(value) <= _STATS_TEXT_CHARACTERS_MAX else None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if value.tzinfo else None
    if isinstance(value, dt.date):
        return value.isoformat()
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value


def _write_row_groups(where: Any, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with pq.ParquetWriter(where, schema, compression=COMPRESSION) as writer:
        for group in _row_groups(batches):
            writer.write_table(pa.Table.from_batches(group, schema))
            rows += sum(batch.num_rows for batch in group)
    return rows


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches of many small files, collected so that the new file has few large row groups."""
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
