"""Files of rows that will become part of tables, written by executors."""

import uuid
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.spark.config import SparkSinkConfig
from connectors.spark.partitions import Folder, by_folder, type_of
from connectors.spark.rows import Rows, fingerprint
from streams.spark.commits.entries import Entry, WrittenRows
from streams.spark.commits.executor_files import open_output
from streams.spark.files import join_path
from streams.spark.tables.model import StagedFile, pack_schema

_GROUP_ROWS: Final = 262_144
_GROUP_BYTES: Final = 64 << 20
"""Rows of a file are collected in memory up to this limit, then written as a row group."""
_OPEN_MAX: Final = 100
"""Most files that are open at once: with more folders than this, the largest are finished early."""


@dataclass
class _Draft:
    """A file that is being written."""

    table: str
    path: str
    folder: Folder
    fingerprint: str
    schema: pa.Schema
    """The columns of the file, then the partition columns."""
    keys: tuple[str, ...]
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0
    rows: int = 0
    stream: Any = None
    writer: pq.ParquetWriter | None = None


class Staging:
    """Writes rows into one file for each table, schema and folder."""

    def __init__(self, folder: str, config: SparkSinkConfig) -> None:
        self._folder = folder
        self._config = config
        self._partitions = config.partitions
        self._drafts: dict[tuple[str, str, Folder], _Draft] = {}
        self._written: list[Entry] = []

    def add(self, rows: Rows) -> None:
        """Add rows; DataError when they have no folder."""
        shape = fingerprint(rows.schema)
        for folder, part in by_folder(rows, self._partitions):
            key = (rows.table, shape, folder)
            draft = self._drafts.get(key)
            if draft is None:
                draft = self._drafts[key] = self._draft(rows, shape, folder)
            table = pa.table(part.columns)
            draft.waiting.append(table)
            draft.waiting_rows += len(table)
            draft.waiting_bytes += table.nbytes
            if draft.waiting_rows >= _GROUP_ROWS or draft.waiting_bytes >= _GROUP_BYTES:
                self._write(draft)
        while len(self._drafts) > _OPEN_MAX:
            self._finish(max(self._drafts, key=lambda key: self._drafts[key].waiting_rows + self._drafts[key].rows))

    def finish(self) -> list[Entry]:
        """Close all files, and return what they are."""
        for key in list(self._drafts):
            self._finish(key)
        written, self._written = self._written, []
        return written

    def _draft(self, rows: Rows, shape: str, folder: Folder) -> _Draft:
        names = {part.name for part in self._partitions}
        in_file = [pa.field(name, column.type) for name, column in rows.columns.items() if name not in names]
        in_folder = [
            pa.field(part.name, type_of(part, rows.columns[part.source].type))
            for part in self._partitions
            if part.source in rows.columns
        ]
        return _Draft(
            table=rows.table,
            path=join_path(self._folder, f"{uuid.uuid4().hex}.parquet"),
            folder=folder,
            fingerprint=shape,
            schema=pa.schema([*in_file, *in_folder]),
            keys=rows.keys,
        )

    def _write(self, draft: _Draft) -> None:
        group = pa.concat_tables(draft.waiting).combine_chunks()
        if draft.writer is None:
            compression = "NONE" if self._config.compression == "none" else self._config.compression
            draft.stream = open_output(draft.path)
            draft.writer = pq.ParquetWriter(draft.stream, group.schema, compression=compression, store_schema=False)
        draft.writer.write_table(group, row_group_size=_GROUP_ROWS)
        draft.rows += len(group)
        draft.waiting, draft.waiting_rows, draft.waiting_bytes = [], 0, 0

    def _finish(self, key: tuple[str, str, Folder]) -> None:
        draft = self._drafts.pop(key)
        if draft.waiting:
            self._write(draft)
        assert draft.writer is not None, "a draft has rows"
        draft.writer.close()
        size = draft.stream.tell()
        draft.stream.close()
        file = StagedFile.of(draft.path, draft.writer.schema, rows=draft.rows, size=size, partition=dict(draft.folder))
        self._written.append(
            WrittenRows(
                table=draft.table,
                file=file,
                fingerprint=draft.fingerprint,
                schema_bytes=pack_schema(draft.schema),
                keys=draft.keys,
            )
        )
