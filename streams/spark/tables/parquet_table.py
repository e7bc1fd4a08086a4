"""Parquet tables of Spark's catalog: their columns grow, files become part of them by a rename."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from streams.spark.files import Files, joined
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.fitting import fitting_path, must_be_rewritten
from streams.spark.tables.layout import data_files, file_name, partition_of, partition_path
from streams.spark.tables.model import StagedFile, TableSpec
from streams.spark.tables.parquet_files import conformed_batches, write_batches

# Spark broadcasts tables of up to 10 MB.
_SMALL_BYTES: Final = 2 << 20


class ParquetTables:
    """What is peculiar to tables in the format `parquet`; its callers hold the table's lock."""

    def __init__(self, catalog: Catalog, files: Files) -> None:
        self._catalog = catalog
        self._files = files
        self._partitions: dict[str, set[str]] = {}
        self._sizes: dict[str, int] = {}
        self._measured: dict[str, int] = {}

    def schema(self, entry: CatalogEntry) -> pa.Schema:
        """The table's columns."""
        return entry.schema

    def partition_by(self, entry: CatalogEntry) -> tuple[str, ...]:
        """The columns that folders stand for."""
        return entry.partition_by

    def create(self, spec: TableSpec, schema: pa.Schema) -> None:
        """Add a table."""
        columns = ordered(schema, spec.partition_by)
        self._catalog.create(spec, columns, partition_by=spec.partition_by, location=spec.location)
        for known in (self._partitions, self._sizes, self._measured):
            known.pop(spec.name, None)

    def change(self, entry: CatalogEntry, schema: pa.Schema) -> None:
        """Add columns and widen types. Old files stay: Spark's readers widen while they read."""
        if schema == entry.schema:
            return
        kept = [field for field in schema if field.name not in entry.partition_by]
        self._catalog.set_columns(entry.name, pa.schema(kept))

    def is_stale(self, entry: CatalogEntry, schema: pa.Schema) -> bool:
        """Does the catalog say something else than the table? It is the only one that says anything."""
        return bool(entry.schema != schema)

    def append(self, entry: CatalogEntry, files: Sequence[StagedFile], *, writer: str, batch: int) -> None:
        """Move files into the table; those that are there already stay as they are."""
        known = self._partitions.get(entry.name, set())
        folders: dict[str, None] = {}
        for index, file in enumerate(files):
            if not file.rows:
                continue
            folder = partition_path(entry.partition_by, file.partition)
            folders[folder] = None
            if folder in known and not self._files.exists(joined(entry.location, folder)):
                # Somebody has dropped the partition.
                known.discard(folder)
            names = [folder] if folder else []
            self._move(entry, file, joined(entry.location, *names, file_name(writer, batch, index)))
        if entry.partition_by:
            self._register(entry, list(folders))
        self._catalog.refresh(entry.name)
        if entry.size_believed is not None:
            self._measure(entry, sum(file.size for file in files))

    def forget(self, name: str) -> None:
        """Ask the catalog again what partitions there are."""
        self._partitions.pop(name, None)

    def _move(self, entry: CatalogEntry, file: StagedFile, target: str) -> None:
        if must_be_rewritten(file.schema_bytes) and self._files.exists(file.path):
            # Spark has no reader for these types; a kill before the move leaves a file that is written again.
            fitting = fitting_path(file.path)
            columns = pa.schema([field for field in entry.schema if field.name in file.schema.names])
            write_batches(self._files, fitting, columns, batches=conformed_batches(self._files, [file.path], columns))
            self._files.move(fitting, target)
            self._files.delete(file.path)
        else:
            self._files.move(file.path, target)

    def _measure(self, entry: CatalogEntry, added: int) -> None:
        """Correct the size that Hive notes at every change of columns, or Spark would broadcast what grew large."""
        if entry.name not in self._sizes:
            self._sizes[entry.name] = sum(file.size for file in data_files(self._files, entry.location))
        else:
            self._sizes[entry.name] += added
        believed = max(entry.size_believed or 0, self._measured.get(entry.name, 0), _SMALL_BYTES)
        if self._sizes[entry.name] > 2 * believed:
            self._catalog.measure(entry.name)
            self._measured[entry.name] = self._sizes[entry.name]

    def _register(self, entry: CatalogEntry, folders: Sequence[str]) -> None:
        known = self._partitions.get(entry.name)
        if known is None:
            known = self._partitions[entry.name] = self._catalog.partitions(entry.name)
        unknown = [folder for folder in folders if folder not in known]
        self._catalog.add_partitions(entry.name, [partition_of(folder, entry.partition_by) for folder in unknown])
        known.update(unknown)


def ordered(schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
    """Columns as Spark's catalog wants them: those of partitions last."""
    kept = [field for field in schema if field.name not in partition_by]
    return pa.schema([*kept, *(schema.field(column) for column in partition_by)])
