"""The tables of Spark's catalog for their writers: create, grow, append, merge, and upkeep."""

import datetime as dt
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from core_broker.service.clock import Clock, SystemClock
from streams.errors import SchemaConflict, StreamsError, WrongOption
from streams.settings import SparkSettings
from streams.spark.files import Files
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.fitting import check_fits, plan_growth
from streams.spark.tables.model import StagedFile, TableInfo, TableSpec, UpkeepResult
from streams.spark.tables.overview import table_info
from streams.spark.tables.parquet_table import ParquetTables
from streams.spark.tables.parquet_upkeep import ParquetUpkeep
from streams.spark.tables.removal import OlderThan, Removal, TopicRange
from streams.spark.types import Change, stored_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streams.spark.tables.delta_table import DeltaTables
    from streams.spark.tables.delta_upkeep import DeltaUpkeep

GROWTH: Final[frozenset[Change]] = frozenset({"add", "widen"})
TARGET_BYTES: Final = 128 << 20
TIMESTAMP_COLUMN: Final = "_timestamp"

# How long what the catalog said is reused: a table may be dropped or altered in a notebook.
_KNOWN_SECONDS: Final = 5.0
_locks: dict[str, threading.RLock] = {}
_locks_guard: Final = threading.Lock()


class _Known(msgspec.Struct, frozen=True):
    """A table as the catalog had it a moment ago."""

    entry: CatalogEntry
    schema: pa.Schema
    partition_by: tuple[str, ...]
    since: float


class Tables:
    """The tables of a session's catalog, for any thread. Only one engine may use a warehouse."""

    def __init__(
        self,
        session: "SparkSession",
        files: Files,
        settings: SparkSettings | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._catalog = Catalog(session)
        self._files = files
        self._settings = settings
        self._clock = clock or SystemClock()
        self._parquet = ParquetTables(self._catalog, files)
        self._known: dict[str, _Known] = {}

    @cached_property
    def _delta(self) -> "DeltaTables":
        # Executors import this package, too, and most of them need no delta-rs.
        from streams.spark.tables.delta_table import DeltaTables

        return DeltaTables(self._catalog, self._files)

    def schema(self, name: str) -> pa.Schema | None:
        """A table's columns, including partition columns; None if there is no table."""
        known = self._find(name, fresh=True)
        return None if known is None else known.schema

    def plan(
        self, spec: TableSpec, schemas: Sequence[pa.Schema], *, allowed: frozenset[Change] = GROWTH
    ) -> list[SchemaConflict | None]:
        """For each schema, the conflict that remains even if columns are added and types widened; None if it fits."""
        known = self._matching(spec)
        if known is None:
            return plan_growth(spec.name, None, schemas, allowed=allowed)[1]
        _, verdicts = plan_growth(spec.name, known.schema, schemas, allowed=allowed)
        return [
            verdict or _partition_conflict(spec.name, known, schema)
            for schema, verdict in zip(schemas, verdicts, strict=True)
        ]

    def evolve(self, spec: TableSpec, schemas: Sequence[pa.Schema]) -> None:
        """Create the table, or add columns and widen types, so that rows of these schemas fit; SchemaConflict."""
        known = self._matching(spec)
        if (
            known is not None
            and not self._format(spec.format).is_stale(known.entry, known.schema)
            and self._grow(spec, known, schemas) == known.schema
        ):
            return
        with self._locked(spec.name):
            known = self._matching(spec, fresh=True)
            if known is None:
                grown = self._grow(spec, None, schemas)
                # Partition columns that no row has are text.
                missing = [pa.field(column, pa.string()) for column in spec.partition_by if column not in grown.names]
                self._format(spec.format).create(spec, pa.schema([*grown, *missing]))
                # Everything but its entry in the catalog may have existed.
                known = self._matching(spec, fresh=True)
            if known is not None:
                self._format(spec.format).change(known.entry, self._grow(spec, known, schemas))
            self._known.pop(spec.name, None)

    def append(self, spec: TableSpec, files: Sequence[StagedFile], *, writer: str, batch: int) -> None:
        """Make staged files part of the table, exactly once: after a kill, the same call does the rest.

        SchemaConflict if the table has not grown to hold them; FileNotFoundError if a staged file is lost.
        """
        if not files:
            return
        with self._locked(spec.name):
            known = self._ready(spec, files)
            check_fits(spec.name, known.schema, files)
            self._format(spec.format).append(known.entry, files, writer=writer, batch=batch)

    def merge(
        self,
        spec: TableSpec,
        files: Sequence[StagedFile],
        *,
        keys: Sequence[str],
        deleted: str,
        order: Sequence[str],
        writer: str,
        batch: int,
    ) -> None:
        """Upsert staged rows by key, exactly once: the last by `order` wins, and deletes if its `deleted` is true."""
        if spec.format != "delta":
            raise WrongOption("table.format", spec.format, "must be delta: other formats have no upserts")
        if not keys:
            raise WrongOption("pk.fields", "", "must name at least one column")
        if not files:
            return
        with self._locked(spec.name):
            known = self._ready(spec, files)
            check_fits(spec.name, known.schema, files, aside=frozenset((deleted, *order)))
            self._delta.merge(known.entry, files, keys=keys, deleted=deleted, order=order, writer=writer, batch=batch)

    def compact(
        self, name: str, *, target_bytes: int = TARGET_BYTES, retention_hours: int = 168, dry_run: bool = False
    ) -> UpkeepResult:
        """Merge small files into files of about a size; the last batch of each writer of a parquet table stays."""
        if target_bytes < 1 << 10:
            raise WrongOption("target_bytes", target_bytes, "must be at least 1024")
        if retention_hours < 0:
            raise WrongOption("retention_hours", retention_hours, "must be at least 0")
        upkeep = self._upkeep(name)
        with self._locked(f"upkeep of {name}"):
            if isinstance(upkeep, ParquetUpkeep):
                return upkeep.compact(target_bytes, dry_run=dry_run)
            return upkeep.compact(target_bytes, dry_run=dry_run, retention_hours=retention_hours)

    def expire(
        self, name: str, older_than_ms: int, *, column: str = TIMESTAMP_COLUMN, dry_run: bool = False
    ) -> UpkeepResult:
        """Remove rows whose time (or day) is longer ago; partitions that become empty are dropped, too."""
        if older_than_ms < 0:
            raise WrongOption("older_than_ms", older_than_ms, "must be at least 0")
        known = self._require(name)
        kind = known.schema.field(column).type if column in known.schema.names else pa.null()
        in_folder = column in known.partition_by
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or (in_folder and pa.types.is_string(kind))):
            raise WrongOption("column", column, f"must be a column of table {name} with times or days")
        before = dt.datetime.fromtimestamp((self._clock.now_ms() - older_than_ms) / 1000, dt.UTC)
        return self._remove(name, OlderThan(column, kind, before), dry_run=dry_run)

    def remove_range(
        self, name: str, topic: str, *, partition: int, first: int, last: int, dry_run: bool = False
    ) -> UpkeepResult:
        """Remove the rows that came from these offsets of a partition, both ends included."""
        removal = TopicRange(topic=topic, partition=partition, first=first, last=last)
        missing = [column for column in removal.columns() if column not in self._require(name).schema.names]
        if missing:
            raise WrongOption("table", name, f"must have the columns {', '.join(missing)}")
        return self._remove(name, removal, dry_run=dry_run)

    def recover(self, spec: TableSpec) -> int:
        """Finish upkeep that a kill has interrupted; returns the number of exchanges of files."""
        if self._find(spec.name, fresh=True) is None:
            return 0
        with self._locked(f"upkeep of {spec.name}"):
            return self._upkeep(spec.name).recover()

    def tables(self) -> list[TableInfo]:
        """Summaries of all tables."""
        found = [self._catalog.find(name) for name in self._catalog.names()]
        return [table_info(self._files, entry) for entry in found if entry is not None]

    def _remove(self, name: str, removal: Removal, *, dry_run: bool) -> UpkeepResult:
        upkeep = self._upkeep(name)
        with self._locked(f"upkeep of {name}"):
            result = upkeep.remove(removal, dry_run=dry_run)
        if result.partitions_dropped:
            self._parquet.forget(name)
        return result

    def _upkeep(self, name: str) -> "ParquetUpkeep | DeltaUpkeep":
        known = self._require(name)
        if known.entry.provider == "delta":
            from streams.spark.tables.delta_upkeep import DeltaUpkeep

            return DeltaUpkeep(entry=known.entry, files=self._files, tables=self._delta)
        return ParquetUpkeep(
            entry=known.entry, files=self._files, catalog=self._catalog, writing=lambda: self._locked(name)
        )

    def _require(self, name: str) -> _Known:
        known = self._find(name, fresh=True)
        if known is None:
            raise WrongOption("table", name, "must be an existing table of format parquet or delta")
        return known

    def _ready(self, spec: TableSpec, files: Sequence[StagedFile]) -> _Known:
        """The table, recreated if it was dropped meanwhile."""
        known = self._matching(spec)
        if known is not None and not self._files.exists(known.entry.location):
            self._parquet.forget(spec.name)
            known = self._matching(spec, fresh=True)
        if known is None:
            self.evolve(spec, [file.schema for file in files])
            known = self._matching(spec, fresh=True)
        if known is None:
            raise StreamsError(f"Table {spec.name} could not be created")
        return known

    def _grow(self, spec: TableSpec, known: _Known | None, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """The columns that the table needs to hold rows of all these schemas; SchemaConflict."""
        has = None if known is None else known.schema
        grown, verdicts = plan_growth(spec.name, has, schemas, allowed=GROWTH)
        for schema, verdict in zip(schemas, verdicts, strict=True):
            conflict = verdict or (None if known is None else _partition_conflict(spec.name, known, schema))
            if conflict is not None:
                raise conflict
        return grown

    def _matching(self, spec: TableSpec, *, fresh: bool = False) -> _Known | None:
        """The table, checked against its writer's format and partitions; None if it does not exist."""
        known = self._find(spec.name, fresh=fresh)
        if known is None:
            return None
        if known.entry.provider != spec.format:
            raise WrongOption("table.format", spec.format, f"table {spec.name} is {known.entry.provider}")
        if known.partition_by != spec.partition_by:
            has = ", ".join(known.partition_by) or "nothing"
            raise WrongOption("partition.by", ",".join(spec.partition_by), f"table {spec.name} is partitioned by {has}")
        return known

    def _find(self, name: str, *, fresh: bool = False) -> _Known | None:
        known = self._known.get(name)
        if known is not None and not fresh and time.monotonic() - known.since < _KNOWN_SECONDS:
            return known
        entry = self._catalog.find(name)
        self._known.pop(name, None)
        if entry is None or entry.provider not in ("parquet", "delta"):
            return None
        tables = self._format(entry.provider)
        try:
            schema = tables.schema(entry)
        except TypeError as error:
            raise WrongOption("table", name, f"has unsupported columns: {error}") from error
        if schema is None:
            return None
        known = _Known(entry, schema, tables.partition_by(entry), time.monotonic())
        self._known[name] = known
        return known

    def _format(self, name: str) -> "ParquetTables | DeltaTables":
        return self._delta if name == "delta" else self._parquet

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with _locks_guard:
            lock = _locks.setdefault(name.lower(), threading.RLock())
        with lock:
            yield


def _partition_conflict(table: str, known: _Known, schema: pa.Schema) -> SchemaConflict | None:
    """The type of a partition column never changes, because its values are names of folders."""
    for column in known.partition_by:
        has = known.schema.field(column).type
        if column in schema.names and stored_type(schema.field(column).type) not in (has, pa.null()):
            return SchemaConflict(table, column, has=str(has), given=str(schema.field(column).type))
    return None
