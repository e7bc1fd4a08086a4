"""Upkeep of delta tables: delta-rs does the work, and every step is one commit."""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from streams.spark.files import Files, join_path
from streams.spark.tables.catalog import CatalogEntry
from streams.spark.tables.delta_table import DeltaTables, with_retries
from streams.spark.tables.layout import parse_file_name
from streams.spark.tables.model import UpkeepResult
from streams.spark.tables.removal import Removal

RETENTION_HOURS: Final = 168
"""How long replaced files are kept for readers that began before; Delta's own default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaUpkeep:
    """Upkeep of one table; writers need not wait, because the log resolves conflicts."""

    entry: CatalogEntry
    files: Files
    tables: DeltaTables

    def recover(self) -> int:
        """Nothing to do: commits are atomic."""
        return 0

    def compact(self, target_bytes: int, *, dry_run: bool, retention_hours: int = RETENTION_HOURS) -> UpkeepResult:
        """Merge small files into large ones, and delete files that no version needs any more."""
        if dry_run:
            actions = pa.table(self.tables.fresh(self.entry.location).get_add_actions(flatten=True))
            small = [size for size in actions.column("size_bytes").to_pylist() if size * 4 <= target_bytes * 3]
            count = len(small) if len(small) > 1 else 0
            return UpkeepResult(
                table=self.entry.name, dry_run=True, files_removed=count, bytes_removed=sum(small) if count else 0
            )
        counts: dict[str, Any] = with_retries(
            lambda: self.tables.fresh(self.entry.location).optimize.compact(target_size=target_bytes)
        )
        self.vacuum(retention_hours)
        return UpkeepResult(
            table=self.entry.name, files_removed=counts["numFilesRemoved"], files_added=counts["numFilesAdded"]
        )

    def vacuum(self, retention_hours: int) -> int:
        """Delete files that no version needs, except those of a batch that a killed writer may still commit."""
        table = self.tables.fresh(self.entry.location)
        unused = table.vacuum(
            retention_hours=retention_hours, dry_run=True, enforce_retention_duration=False, full=True
        )
        deleted = 0
        for path in unused:
            origin = parse_file_name(path.rpartition("/")[2])
            last = None if origin is None else table.transaction_version(origin.writer)
            if origin is None or (last is not None and origin.batch <= last):
                self.files.delete(join_path(self.entry.location, path))
                deleted += 1
        table.create_checkpoint()
        table.cleanup_metadata()
        return deleted

    def remove(self, removal: Removal, *, dry_run: bool) -> UpkeepResult:
        """Remove rows; files without any others are deleted whole."""
        predicate = removal.predicate()
        if dry_run:
            table = self.tables.fresh(self.entry.location)
            rows = pa.RecordBatchReader.from_stream(table.scan(columns=[removal.columns()[0]], predicate=predicate))
            return UpkeepResult(table=self.entry.name, dry_run=True, rows_removed=sum(batch.num_rows for batch in rows))
        counts: dict[str, Any] = with_retries(lambda: self.tables.fresh(self.entry.location).delete(predicate))
        return UpkeepResult(
            table=self.entry.name,
            rows_removed=counts["num_deleted_rows"] or 0,
            files_removed=counts["num_removed_files"],
            files_added=counts["num_added_files"],
        )
