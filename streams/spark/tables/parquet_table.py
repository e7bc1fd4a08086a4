"""Parquet tables of Spark's catalog: their columns grow, and files are added by a rename."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from streams.spark.files import Files, join_path
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.fitting import must_be_rewritten
from streams.spark.tables.layout import data_files, file_name, parse_partition, partition_path
from streams.spark.tables.model import StagedFile, TableSpec
from streams.spark.tables.parquet_files import move_file

# Spark broadcasts tables of up to 10 MB.
_SMALL_BYTES: Final = 2 << 20


class ParquetTables:
    """Tables in the format `parquet`; callers hold the table's lock."""

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
        """The partition columns."""
        return entry.partition_by

    def create(self, spec: TableSpec, schema: pa.Schema) -> None:
        """Create a table."""
        # Spark's catalog wants partition columns last.
        columns = [field for field in schema if field.name not in spec.partition_by]
        columns += [schema.field(column) for column in spec.partition_by]
        self._catalog.create(spec, pa.schema(columns), partition_by=spec.partition_by, location=spec.location)
        for known in (self._partitions, self._sizes, self._measured):
            known.pop(spec.name, None)

    def change(self, entry: CatalogEntry, schema: pa.Schema) -> None:
        """Add columns and widen types. Old files stay: Spark's readers widen while they read."""
        if schema == entry.schema:
            return
        kept = [field for field in schema if field.name not in entry.partition_by]
        self._catalog.set_columns(entry.name, pa.schema(kept))

    def is_stale(self, entry: CatalogEntry, schema: pa.Schema) -> bool:
        """Whether the catalog differs from these columns; it is the only place that has them."""
        return bool(entry.schema != schema)

    def append(self, entry: CatalogEntry, files: Sequence[StagedFile], *, writer: str, batch: int) -> None:
        """Move files into the table, except those that are there already."""
        known = self._partitions.get(entry.name, set())
        folders: dict[str, None] = {}
        for index, file in enumerate(files):
            if not file.rows:
                continue
            folder = partition_path(entry.partition_by, file.partition)
            folders[folder] = None
            if folder in known and not self._files.exists(join_path(entry.location, folder)):
                known.discard(folder)  # the partition was dropped by another program
            target = join_path(entry.location, *([folder] if folder else []), file_name(writer, batch, index))
            columns = None
            if must_be_rewritten(file.schema_bytes):
                columns = pa.schema([field for field in entry.schema if field.name in file.schema.names])
            move_file(self._files, file.path, target, columns=columns)
        if entry.partition_by:
            self._register(entry, list(folders))
        self._catalog.refresh(entry.name)
        if entry.planned_size is not None:
            self._measure(entry, sum(file.size for file in files))

    def forget(self, name: str) -> None:
        """Read the table's partitions from the catalog again."""
        self._partitions.pop(name, None)

    def _measure(self, entry: CatalogEntry, added: int) -> None:
        """Correct the size that Hive records when columns change, or Spark would broadcast a table that has grown."""
        if entry.name not in self._sizes:
            self._sizes[entry.name] = sum(file.size for file in data_files(self._files, entry.location))
        else:
            self._sizes[entry.name] += added
        planned = max(entry.planned_size or 0, self._measured.get(entry.name, 0), _SMALL_BYTES)
        if self._sizes[entry.name] > 2 * planned:
            self._catalog.measure(entry.name)
            self._measured[entry.name] = self._sizes[entry.name]

    def _register(self, entry: CatalogEntry, folders: Sequence[str]) -> None:
        known = self._partitions.get(entry.name)
        if known is None:
            known = self._partitions[entry.name] = self._catalog.partitions(entry.name)
        unknown = [folder for folder in folders if folder not in known]
        self._catalog.add_partitions(entry.name, [parse_partition(folder, entry.partition_by) for folder in unknown])
        known.update(unknown)
