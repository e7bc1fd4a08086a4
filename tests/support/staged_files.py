"""Staged files as a sink's executors leave them."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streams.spark.tables.model import StagedFile

_numbers = itertools.count()


def staged(
    folder: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema, *, partition: dict[str, str | None] | None = None
) -> StagedFile:
    """A file with these rows."""
    path = folder / "staging" / f"{next(_numbers)}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return StagedFile.of(str(path), schema, rows=len(rows), size=path.stat().st_size, partition=partition or {})
