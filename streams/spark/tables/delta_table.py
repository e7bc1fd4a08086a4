"""Delta tables through delta-rs, which writes their log; Spark reads them with our data source or its own.

A batch is one commit with the writer's name and the batch's number (an app transaction of Delta's protocol): the log
itself says what was written, so a repeated batch is skipped.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from core_broker.service.clock import SystemClock
from streams.errors import WrongOption
from streams.spark.files import Files, join_path, local_path
from streams.spark.tables.catalog import Catalog, CatalogEntry
from streams.spark.tables.fitting import is_readable
from streams.spark.tables.layout import file_name, partition_path, safe_writer
from streams.spark.tables.model import StagedFile, TableSpec
from streams.spark.tables.parquet_files import delta_stats, move_file, open_parquet
from streams.spark.types import changes, conformed, merged_schema, stored_schema, stored_type

log = logging.getLogger(__name__)

NATIVE_CLASS: Final = "io.delta.sql.DeltaSparkSessionExtension"
_ATTEMPTS: Final = 10
# Every commit reads the log from the last checkpoint on: with a commit per second, a checkpoint every 20 pays off.
_CHECKPOINT_COMMITS: Final = "20"
_SAFE_FOLDER: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=.-/")
_POSITION: Final = "__caudal_position"
_Result = TypeVar("_Result")


class DeltaTables:
    """Tables in the format `delta`; callers hold the table's lock."""

    def __init__(self, catalog: Catalog, files: Files) -> None:
        self._catalog = catalog
        self._files = files
        self._handles: dict[str, tuple[DeltaTable, int]] = {}

    @cached_property
    def is_native(self) -> bool:
        """Whether the session has Delta's own jars, so that Spark itself knows the tables."""
        return self._catalog.has_extension(NATIVE_CLASS)

    def handle(self, location: str) -> DeltaTable:
        """The current version of the table; TableNotFoundError if there is no log."""
        # If the table was dropped and recreated under the same name, the folder of its log is another one.
        folder = self._files.local(join_path(location, "_delta_log"))
        inode = folder.stat().st_ino if folder is not None and folder.exists() else 0
        table, known = self._handles.get(location, (None, 0))
        if table is None or inode != known or not inode:
            table = DeltaTable(delta_uri(location))
            self._handles[location] = table, inode
        else:
            table.update_incremental()
        return table

    def fresh(self, location: str) -> DeltaTable:
        """The current version of the table, for long work beside its writers."""
        return DeltaTable(delta_uri(location))

    def schema(self, entry: CatalogEntry) -> pa.Schema | None:
        """The table's columns; None if a crash has left it without a log."""
        if not DeltaTable.is_deltatable(delta_uri(entry.location)):
            self._handles.pop(entry.location, None)
            return None
        return arrow_schema(self.handle(entry.location))

    def partition_by(self, entry: CatalogEntry) -> tuple[str, ...]:
        """The partition columns."""
        return tuple(self.handle(entry.location).metadata().partition_columns)

    def create(self, spec: TableSpec, schema: pa.Schema) -> None:
        """Add a table to the catalog and create its log, or whichever of the two is missing."""
        location = spec.location
        if location is None and DeltaTable.is_deltatable(delta_uri(self._catalog.warehouse_location(spec.name))):
            location = self._catalog.warehouse_location(spec.name)
        partition_by = spec.partition_by if self.is_native else ()
        self._catalog.create(spec, schema, partition_by=partition_by, location=location)
        entry = self._catalog.find(spec.name)
        if entry is None:
            raise WrongOption("table", spec.name, "must be the name of a table, not of a view")
        DeltaTable.create(
            delta_uri(entry.location),
            delta_schema(schema),
            mode="ignore",
            partition_by=list(spec.partition_by),
            configuration={"delta.checkpointInterval": _CHECKPOINT_COMMITS},
        )
        self.renew_entry(entry)

    def change(self, entry: CatalogEntry, schema: pa.Schema) -> None:
        """Add columns; to widen types, the table is rewritten in one commit, because delta-rs cannot do it in place."""
        with_retries(lambda: self._change(entry, schema))
        self.renew_entry(entry)

    def is_stale(self, entry: CatalogEntry, schema: pa.Schema) -> bool:
        """Whether the catalog differs from the log."""
        return not self.is_native and (entry.source != self._catalog.source(entry.location) or entry.schema != schema)

    def renew_entry(self, entry: CatalogEntry) -> None:
        """Bring the catalog in line with the log."""
        schema = self.schema(entry)
        if schema is not None and self.is_stale(entry, schema):
            self._catalog.set_columns(entry.name, schema, source=self._catalog.source(entry.location))

    def append(self, entry: CatalogEntry, files: Sequence[StagedFile], *, writer: str, batch: int) -> None:
        """Move files into the table's folder and commit them, once."""
        kept = [(index, file) for index, file in enumerate(files) if file.rows]
        table = self.handle(entry.location)
        if not kept or is_done(table, writer, batch):
            return
        schema = arrow_schema(table)
        partition_by = table.metadata().partition_columns
        actions: list[AddAction | RemoveAction] = [
            self._move(entry, file, partition_by, name=file_name(writer, batch, index), schema=schema)
            for index, file in kept
        ]
        try:
            _commit(table, actions, writer=writer, batch=batch)
        except CommitFailedError:
            with_retries(lambda: _commit(self.handle(entry.location), actions, writer=writer, batch=batch))

    def merge(
        self,
        entry: CatalogEntry,
        files: Sequence[StagedFile],
        *,
        keys: Sequence[str],
        deleted: str,
        order: Sequence[str],
        writer: str,
        batch: int,
    ) -> None:
        """Replace the table's row of every key by the last staged one, or delete it, once."""
        table = self.handle(entry.location)
        if is_done(table, writer, batch) or not any(file.rows for file in files):
            return
        rows = staged_rows(self._files, files, arrow_schema(table), extra=(deleted, *order))
        rows = last_rows(rows, keys, order)
        with_retries(lambda: self._merge(entry, rows, keys=keys, deleted=deleted, writer=writer, batch=batch))

    def _merge(
        self, entry: CatalogEntry, rows: pa.Table, *, keys: Sequence[str], deleted: str, writer: str, batch: int
    ) -> None:
        table = self.handle(entry.location)
        if is_done(table, writer, batch):
            return
        columns = [field for field in arrow_schema(table) if field.name != deleted]
        if deleted in rows.column_names:
            flags = rows.column(deleted).cast(pa.bool_()).fill_null(False)
        else:  # the writer never deletes
            flags = pa.repeat(pa.scalar(False), rows.num_rows)
        source = conformed(rows, pa.schema(columns)).append_column(deleted, flags)
        flag = f"source.{identifier(deleted)}"
        merging = table.merge(
            source,
            " AND ".join(_key_condition(rows, key) for key in keys),
            source_alias="source",
            target_alias="target",
            streamed_exec=False,
            commit_properties=commit_properties(writer, batch),
        )
        (
            merging.when_matched_delete(flag)
            .when_matched_update_all(except_cols=[deleted])
            .when_not_matched_insert_all(f"NOT {flag}", except_cols=[deleted])
            .execute()
        )

    def _change(self, entry: CatalogEntry, schema: pa.Schema) -> None:
        table = self.handle(entry.location)
        has = arrow_schema(table)
        if has == schema:
            return
        if changes(has, schema) == {"add"} and not _grows_inside_lists(has, schema):
            changed = [field for field in schema if field.name not in has.names or has.field(field.name) != field]
            table.alter.add_columns(delta_schema(pa.schema(changed)).fields)
            return
        log.info("rewriting table for wider types", extra={"table": entry.name})
        partition_by = list(table.metadata().partition_columns)
        rows = (
            part
            for batch in pa.RecordBatchReader.from_stream(table.scan())
            for part in conformed(pa.Table.from_batches([batch]), schema).to_batches()
        )
        write_deltalake(
            table,
            pa.RecordBatchReader.from_batches(schema, rows),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=partition_by or None,
        )

    def _move(
        self, entry: CatalogEntry, file: StagedFile, partition_by: Sequence[str], *, name: str, schema: pa.Schema
    ) -> AddAction:
        """Move a file into the table's folder, with exactly the table's types, as Delta requires."""
        folder = partition_path(partition_by, file.partition)
        relative = join_path(folder, name) if folder and set(folder) <= _SAFE_FOLDER else name
        target = join_path(entry.location, relative)
        columns = pa.schema([field for field in schema if field.name in file.schema.names])
        has_types = set(file.schema.names) == set(columns.names) and all(
            is_readable(field.type) and stored_type(field.type) == columns.field(field.name).type
            for field in file.schema
        )
        move_file(self._files, file.path, target, columns=None if has_types else columns)
        with open_parquet(self._files, target) as content:
            size = self._files.info(target)
            return AddAction(
                path=relative,
                size=size.size if size is not None else file.size,
                partition_values={column: file.partition.get(column) or None for column in partition_by},
                modification_time=SystemClock().now_ms(),
                data_change=True,
                stats=delta_stats(content.metadata, content.schema_arrow),
            )


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


def with_retries(action: Callable[[], _Result]) -> _Result:
    """Repeat a commit that conflicted with another writer's; each attempt reads the table again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return action()
        except CommitFailedError as error:
            log.info("commit conflicted, retrying", extra={"reason": str(error)})
    return action()


def is_done(table: DeltaTable, writer: str, batch: int) -> bool:
    """Whether the log says that this batch was written."""
    last = table.transaction_version(safe_writer(writer))
    return last is not None and last >= batch


def _commit(table: DeltaTable, actions: list[AddAction | RemoveAction], *, writer: str, batch: int) -> None:
    if not is_done(table, writer, batch):
        columns = table.metadata().partition_columns
        properties = commit_properties(writer, batch)
        table.create_write_transaction(actions, "append", table.schema(), columns, commit_properties=properties)


def commit_properties(writer: str, batch: int) -> CommitProperties:
    """The properties that mark a commit as this batch's."""
    return CommitProperties(app_transactions=[Transaction(safe_writer(writer), batch)])


def delta_uri(location: str) -> str:
    """A table's folder in delta-rs's notation."""
    if location.startswith("file:"):
        return str(local_path(location))
    if location.startswith("hdfs:"):
        raise WrongOption("location", location, "must be local or in an object store: delta-rs does not write to HDFS")
    return location.replace("s3a://", "s3://", 1)


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """The table's columns, in the types of our tables."""
    return stored_schema(pa.schema(table.schema().to_arrow()))


def delta_schema(schema: pa.Schema) -> Schema:
    """Columns in delta-rs's types."""
    return Schema.from_arrow(schema)


def identifier(name: str) -> str:
    """A quoted column name in a predicate."""
    return '"' + name.replace('"', '""') + '"'


def _key_condition(rows: pa.Table, key: str) -> str:
    sides = [f"target.{identifier(key)}", f"source.{identifier(key)}"]
    # Two nulls are the same key; comparing them so is slower, and needed only if there is one.
    return " IS NOT DISTINCT FROM ".join(sides) if rows.column(key).null_count else " = ".join(sides)


def _grows_inside_lists(has: pa.Schema, then: pa.Schema) -> bool:
    return any(
        field.name in has.names and has.field(field.name).type != field.type and not pa.types.is_struct(field.type)
        for field in then
    )
