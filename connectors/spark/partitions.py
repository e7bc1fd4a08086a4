"""Partition columns: rows are grouped by the folders that their values name."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api.errors import DataError
from connectors.spark.config import PartitionColumn
from connectors.spark.rows import Rows

Folder = tuple[tuple[str, str | None], ...]
"""The value of each partition column, as text."""
_PATTERNS: Final = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}


def by_folder(rows: Rows, partitions: Sequence[PartitionColumn]) -> Iterator[tuple[Folder, Rows]]:
    """The rows of each folder, without the partition columns. DataError when a column is missing."""
    if not partitions:
        yield (), rows
        return
    texts = [_folder_texts(rows, part) for part in partitions]
    remaining = {name: column for name, column in rows.columns.items() if name not in {p.name for p in partitions}}
    for values, indices in _group(texts):
        folder = tuple((part.name, value) for part, value in zip(partitions, values, strict=True))
        if len(indices) == len(rows.sources):
            yield folder, rows._replace(columns=remaining)
            continue
        chosen = pa.array(indices)
        columns = {name: column.take(chosen) for name, column in remaining.items()}
        yield folder, rows._replace(columns=columns, sources=rows.sources[indices])


def _folder_texts(rows: Rows, part: PartitionColumn) -> pa.Array:
    """The values of a partition column, as they are in the names of folders."""
    column = rows.columns.get(part.source)
    if column is None and rows.are_deletions:
        return pa.nulls(len(rows.sources), pa.string())  # The key alone finds the row, in any folder.
    if column is None:
        raise DataError(f"The table is partitioned by {part.name}, but the record has no field {part.source}")
    is_timestamp = pa.types.is_timestamp(column.type)
    if part.period is not None:
        if not is_timestamp and not pa.types.is_date(column.type):
            raise DataError(f"{part.period}({part.source}) needs a timestamp or a date, but the field is {column.type}")
        seconds = column.cast(pa.timestamp("s"), safe=False) if is_timestamp else column
        return pc.strftime(seconds, format=_PATTERNS[part.period])
    if pa.types.is_nested(column.type) or pa.types.is_floating(column.type) or pa.types.is_binary(column.type):
        raise DataError(f"A table cannot be partitioned by {part.name}, which is {column.type}")
    return (column.cast(pa.timestamp("us")) if is_timestamp else column).cast(pa.string())


def type_of(part: PartitionColumn, source: pa.DataType) -> pa.DataType:
    """The type of a partition column."""
    if part.period is None:
        return source
    return {"year": pa.int32(), "month": pa.string(), "day": pa.date32(), "hour": pa.string()}[part.period]


def _group(texts: Sequence[pa.Array]) -> Iterator[tuple[tuple[str | None, ...], np.ndarray[Any, Any]]]:
    """Each combination of values, and the rows that have it."""
    encoded = [text.dictionary_encode(null_encoding="encode") for text in texts]
    codes = np.zeros(len(texts[0]), dtype=np.int64)
    for one in encoded:
        codes = codes * max(1, len(one.dictionary)) + one.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for group in np.split(order, starts[1:]) if len(order) else []:
        yield tuple(one[int(group[0])].as_py() for one in encoded), group
