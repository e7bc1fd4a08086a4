"""Upkeep of delta tables: their log makes every step one commit, delta-rs does the work."""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from streams.spark.files import Files, joined
from streams.spark.tables.catalog import CatalogEntry
from streams.spark.tables.delta_table import DeltaTables, retried
from streams.spark.tables.layout import written
from streams.spark.tables.model import UpkeepResult
from streams.spark.tables.removal import Removal

RETENTION_HOURS: Final = 168
"""How long files that were replaced stay for readers that began before; Delta's own default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaUpkeep:
    """Upkeep of one table; writers need not wait, the log sorts out who was first."""

    entry: CatalogEntry
    files: Files
    tables: DeltaTables

    def recover(self) -> int:
        """Nothing is ever left half done in a log."""
        return 0

    def compact(self, target_bytes: int, *, dry_run: bool, retention_hours: int = RETENTION_HOURS) -> UpkeepResult:
        """Make large files out of small ones, and delete what no version needs any more."""
        if dry_run:
            small = [size for size in self._sizes() if size * 4 <= target_bytes * 3]
            count = len(small) if len(small) > 1 else 0
            return UpkeepResult(
                table=self.entry.name, dry_run=True, files_removed=count, bytes_removed=sum(small) if count else 0
            )
        counts: dict[str, Any] = retried(
            lambda: self.tables.fresh(self.entry.location).optimize.compact(target_size=target_bytes)
        )
        self.vacuum(retention_hours)
        return UpkeepResult(
            table=self.entry.name, files_removed=counts["numFilesRemoved"], files_added=counts["numFilesAdded"]
        )

    def vacuum(self, retention_hours: int) -> int:
        """Delete files that no version needs; not those that a writer was killed over before it could commit them."""
        table = self.tables.fresh(self.entry.location)
        unused = table.vacuum(
            retention_hours=retention_hours, dry_run=True, enforce_retention_duration=False, full=True
        )
        deleted = 0
        for path in unused:
            made = written(path.rpartition("/")[2])
            last = None if made is None else table.transaction_version(made.writer)
            if made is None or (last is not None and made.batch <= last):
                self.files.delete(joined(self.entry.location, path))
                deleted += 1
        table.create_checkpoint()
        table.cleanup_metadata()
        return deleted

    def remove(self, removal: Removal, *, dry_run: bool) -> UpkeepResult:
        """Remove rows; files without any other go as they are."""
        predicate = removal.predicate()
        if dry_run:
            table = self.tables.fresh(self.entry.location)
            rows = pa.RecordBatchReader.from_stream(table.scan(columns=[removal.columns()[0]], predicate=predicate))
            return UpkeepResult(table=self.entry.name, dry_run=True, rows_removed=sum(batch.num_rows for batch in rows))
        counts: dict[str, Any] = retried(lambda: self.tables.fresh(self.entry.location).delete(predicate))
        return UpkeepResult(
            table=self.entry.name,
            rows_removed=counts["num_deleted_rows"] or 0,
            files_removed=counts["num_removed_files"],
            files_added=counts["num_added_files"],
        )

    def _sizes(self) -> list[int]:
        actions = pa.table(self.tables.fresh(self.entry.location).get_add_actions(flatten=True))
        sizes: list[int] = actions.column("size_bytes").to_pylist()
        return sizes
