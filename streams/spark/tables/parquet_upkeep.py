"""Upkeep of parquet tables: merges small files into large ones, and removes rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streams.spark.files import FileInfo, Files, join_path
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.journal import Journal
from streams.spark.tables.layout import data_files, latest_batches, may_be_repeated, parse_partition
from streams.spark.tables.model import UpkeepResult
from streams.spark.tables.parquet_files import BATCH_ROWS, conformed_batches, open_parquet, write_batches
from streams.spark.tables.removal import Removal, Verdict
from streams.spark.types import conformed


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetUpkeep:
    """Upkeep of one table, one operation at a time; writers wait only while files are exchanged."""

    entry: CatalogEntry
    files: Files
    catalog: Catalog
    writing: Callable[[], AbstractContextManager[object]]
    """Holds off the table's writers."""

    def recover(self) -> int:
        """Finish exchanges that a kill has interrupted; returns how many there were."""
        with self.writing():
            return self._journal().recover()

    def compact(self, target_bytes: int, *, dry_run: bool) -> UpkeepResult:
        """Merge the small files of each partition into files of about this size."""
        self.recover()
        groups = small_groups(data_files(self.files, self.entry.location), target_bytes)
        if groups and not dry_run:
            draft = self._journal().draft()
            added = [self._merge_files(draft, number, group) for number, group in enumerate(groups)]
            self._exchange(draft, [entry.path for group in groups for entry in group], added)
        return UpkeepResult(
            table=self.entry.name,
            dry_run=dry_run,
            files_removed=sum(len(group) for group in groups),
            files_added=len(groups),
            bytes_removed=sum(entry.size for group in groups for entry in group),
        )

    def remove(self, removal: Removal, *, dry_run: bool) -> UpkeepResult:
        """Remove rows; files that also hold others are rewritten."""
        self.recover()
        found = data_files(self.files, self.entry.location)
        latest = latest_batches(found)
        draft = self._journal().draft()
        removed: list[FileInfo] = []
        added: list[tuple[str, str]] = []
        rows = 0
        for entry in found:
            gone, left = self._count(entry, removal)
            if not gone:
                continue
            rows += gone
            removed.append(entry)
            # A writer that repeats its last batch looks for the file: it stays, even without rows.
            if (left or may_be_repeated(entry.name, latest)) and not dry_run:
                path = join_path(draft, f"{len(added)}.parquet")
                write_batches(self.files, path, self._columns(), batches=self._remaining(entry, removal))
                added.append((path, entry.path))
        dropped = 0
        if removed and not dry_run:
            self._exchange(draft, [entry.path for entry in removed], added)
            dropped = self._drop_empty_partitions({entry.path.rpartition("/")[0] for entry in removed})
        return UpkeepResult(
            table=self.entry.name,
            dry_run=dry_run,
            files_removed=len(removed),
            files_added=len(added),
            rows_removed=rows,
            bytes_removed=sum(entry.size for entry in removed),
            partitions_dropped=dropped,
        )

    def _journal(self) -> Journal:
        return Journal(self.files, self.entry.location)

    def _columns(self) -> pa.Schema:
        return pa.schema([field for field in self.entry.schema if field.name not in self.entry.partition_by])

    def _merge_files(self, draft: str, number: int, group: Sequence[FileInfo]) -> tuple[str, str]:
        name = f"compacted-{draft.rpartition('-')[2]}-{number}.parquet"
        path = join_path(draft, name)
        rows = conformed_batches(self.files, [entry.path for entry in group], self._columns())
        write_batches(self.files, path, self._columns(), batches=rows)
        return path, join_path(group[0].path.rpartition("/")[0], name)

    def _count(self, entry: FileInfo, removal: Removal) -> tuple[int, int]:
        """The numbers of rows of a file that are removed, and that stay."""
        partition = self._partition(entry)
        with open_parquet(self.files, entry.path) as file:
            total = file.metadata.num_rows
            match removal.verdict(file.metadata, partition):
                case Verdict.KEEP:
                    return 0, total
                case Verdict.DROP:
                    return total, 0
                case Verdict.FILTER:
                    names = [name for name in removal.columns() if name in file.schema_arrow.names]
                    gone = sum(
                        pc.sum(removal.matches(pa.Table.from_batches([batch]), partition)).as_py() or 0
                        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names)
                    )
                    return gone, total - gone

    def _remaining(self, entry: FileInfo, removal: Removal) -> Iterator[pa.RecordBatch]:
        partition = self._partition(entry)
        with open_parquet(self.files, entry.path) as file:
            if removal.verdict(file.metadata, partition) is Verdict.DROP:
                return
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                rows = pa.Table.from_batches([batch])
                left = rows.filter(pc.invert(removal.matches(rows, partition)))
                yield from conformed(left, self._columns()).to_batches()

    def _partition(self, entry: FileInfo) -> dict[str, str | None]:
        return parse_partition(entry.path.removeprefix(self.entry.location), self.entry.partition_by)

    def _exchange(self, draft: str, removed: Sequence[str], added: Sequence[tuple[str, str]]) -> None:
        with self.writing():
            self._journal().exchange(draft, removed=removed, added=added)
            self.catalog.refresh(self.entry.name)

    def _drop_empty_partitions(self, folders: set[str]) -> int:
        dropped = 0
        for folder in sorted(folders) if self.entry.partition_by else ():
            with self.writing():
                if not self.files.list(folder):
                    partition = parse_partition(folder.removeprefix(self.entry.location), self.entry.partition_by)
                    self.catalog.drop_partition(self.entry.name, partition)
                    self.files.delete(folder)
                    dropped += 1
        return dropped


def small_groups(found: Sequence[FileInfo], target_bytes: int) -> list[list[FileInfo]]:
    """Groups of small files to merge, each within one folder; files that a writer may look for are left alone."""
    latest = latest_batches(found)
    groups: list[list[FileInfo]] = []
    size = 0
    for entry in sorted(found, key=lambda entry: entry.path):
        if may_be_repeated(entry.name, latest) or entry.size * 4 > target_bytes * 3:
            continue
        folder = entry.path.rpartition("/")[0]
        is_new = not groups or groups[-1][0].path.rpartition("/")[0] != folder or size + entry.size > target_bytes
        if is_new:
            groups.append([])
            size = 0
        groups[-1].append(entry)
        size += entry.size
    return [group for group in groups if len(group) > 1]
