"""Rows of staged files for an upsert: with their partition columns, and only the last row of each key."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streams.spark.files import Files
from streams.spark.tables.model import StagedFile
from streams.spark.tables.parquet_files import open_parquet
from streams.spark.types import conformed, merged_schema, stored_schema

_POSITION: Final = "__caudal_position"


def staged_rows(files: Files, staged: Sequence[StagedFile], schema: pa.Schema, *, extra: Sequence[str]) -> pa.Table:
    """All rows of the files in the table's columns, and in those that only the upsert needs."""
    parts = []
    for file in staged:
        if not file.rows:
            continue
        with open_parquet(files, file.path) as content:
            rows = content.read()
        for column, value in file.partition.items():
            if column not in rows.column_names and column in schema.names:
                values = pa.array([value or None], pa.string()).cast(schema.field(column).type)
                rows = rows.append_column(column, pa.chunked_array([values.take(pa.array([0] * rows.num_rows))]))
        parts.append(rows)
    columns = schema
    for part in parts:
        needed = [field for field in part.schema if field.name in extra and field.name not in schema.names]
        columns = merged_schema("staged files", columns, stored_schema(pa.schema(needed)))
    return pa.concat_tables([conformed(part, columns) for part in parts])


def last_rows(rows: pa.Table, keys: Sequence[str], order: Sequence[str]) -> pa.Table:
    """The last row by `order` of every key; null is a key like any other."""
    if order:
        rows = rows.take(pc.sort_indices(rows, sort_keys=[(column, "ascending", "at_start") for column in order]))
    distinct = list(dict.fromkeys(keys))
    numbered = rows.select(distinct).append_column(_POSITION, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(distinct).aggregate([(_POSITION, "max")])
    return rows.take(last.column(f"{_POSITION}_max"))
