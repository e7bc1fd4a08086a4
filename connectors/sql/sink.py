"""JdbcSink: each put is one transaction, which leaves nothing behind when it fails."""

import logging
import re
from collections.abc import Collection, Sequence
from typing import ClassVar, Final

from sqlalchemy import Connection
from typing_extensions import override

from connect.api.config import Config
from connect.api.errors import DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkContext, SinkTask, TopicPartition
from connectors.sql import errors
from connectors.sql.batch import Batcher, TableBatch
from connectors.sql.changes import Step, parts
from connectors.sql.config import SqlSinkConfig
from connectors.sql.database import Database
from connectors.sql.dialect import Table
from connectors.sql.offset_table import OffsetTable
from connectors.sql.row_plan import Row
from connectors.sql.structure import Structure
from connectors.sql.writers import CopyWriter, StatementWriter

log = logging.getLogger(__name__)

_CONFLICT_PAUSE_MS: Final = 100
_NAME_PART: Final = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^.]+)')


class SqlSinkTask(SinkTask):
    """Writes records as rows."""

    java_name: ClassVar[str] = "io.confluent.connect.jdbc.sink.JdbcSinkTask"
    config: SqlSinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        assert isinstance(config, SqlSinkConfig)
        super().__init__(config, context)
        self._tables: dict[str, Table] = {}
        self._failures = 0
        self._database = Database(config, wait=context.wait)
        self._structure = Structure(self._database, config)
        family, dialect = self._database.family, self._database.dialect
        self._batcher = Batcher(self._structure, config, family=family, zone=config.zone())
        self._writer = CopyWriter(dialect) if family == "postgresql" else StatementWriter(dialect)
        self._unclaimed: set[TopicPartition] = set()
        self._offsets: OffsetTable | None = None
        if config.exactly_once:
            table = parse_table(config.exactly_once_table, family=family)
            self._offsets = OffsetTable(self._database, table=table, connector=context.connector)

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        if self._offsets is None or not places:
            return
        self._unclaimed.update(places)
        try:
            self._claim(self._offsets)
        except RetriableError as error:
            log.warning("the stored offsets cannot be read yet", extra={"error": str(error)})

    def _claim(self, offsets: OffsetTable) -> None:
        """Take the partitions that were assigned to this task, and continue at their stored offsets."""
        try:
            found = offsets.claim(self._unclaimed)
        except errors.DRIVER_ERRORS as error:
            raise self._fail(error, doing="cannot read the offsets that are stored in the database") from error
        self._unclaimed.clear()
        if found:
            self.context.rewind(found)

    @override
    def close(self, places: Collection[TopicPartition]) -> None:
        self._unclaimed.difference_update(places)
        if self._offsets is not None:
            self._offsets.release(places)

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        if self._unclaimed and self._offsets is not None:
            records = self._claim_late(self._offsets, records)
        try:
            self._put(records)
        except errors.DRIVER_ERRORS as error:
            if not errors.may_be_stale(error):
                raise self._fail(error, doing="cannot write to the database") from error
            self._forget()
            # Once more, with the tables reflected again: one may have been altered from outside.
            try:
                self._put(records)
            except errors.DRIVER_ERRORS as again:
                raise self._fail(again, doing="cannot write to the database") from again
        except RetriableError:
            self._forget()
            self.context.retry_after(self.config.retry_backoff_ms)
            raise
        self._failures = 0

    def _claim_late(self, offsets: OffsetTable, records: Sequence[SinkRecord]) -> list[SinkRecord]:
        """Claim partitions whose records were read before their stored offset was known; they are read again."""
        late = frozenset(self._unclaimed)
        self._claim(offsets)
        first: dict[TopicPartition, int] = {}
        for record in records:
            if record.place in late:
                first.setdefault(record.place, record.original_offset)
        self.context.rewind({place: offsets.next_offset(place, offset) for place, offset in first.items()})
        return [record for record in records if record.place not in late]

    @override
    def stop(self) -> None:
        self._database.close()

    def _put(self, records: Sequence[SinkRecord]) -> None:
        if self._offsets is not None:
            records = self._offsets.without_written(records)
        if not records:
            return
        for topic in {record.topic for record in records} - self._tables.keys():
            name = self.config.table_name_format.replace("${topic}", topic)
            if "debezium" in self.config.given.get("connector.class", ""):
                name = name.replace(".", "_")
            self._tables[topic] = parse_table(name, family=self._database.family)
        batches = list(self._batcher.batches(records, self._tables))
        try:
            self._write_transaction(batches, records)
        except BaseException as error:
            if errors.is_too_large(error):
                self._refuse_too_large(batches, error)
            raise

    def _write_transaction(self, batches: Sequence[TableBatch], records: Sequence[SinkRecord]) -> None:
        is_written = False
        try:
            with self._database.transaction() as connection:
                for batch in batches:
                    for step in batch.steps:
                        self._write(connection, batch, step)
                if self._offsets is not None:
                    self._offsets.write(connection, records)
                is_written = True
        except BaseException:
            # When the commit itself fails, it is unknown whether it was done.
            if is_written and self._offsets is not None:
                self._offsets.mark_unsure()
            raise
        if self._offsets is not None:
            self._offsets.mark_committed()

    def _refuse_too_large(self, batches: Sequence[TableBatch], error: BaseException) -> None:
        """DataError when a row is too large for MySQL, which closes the connection as in an outage: for ever."""
        self._database.disconnect()
        most = self._database.packet_bytes()
        rows = (row for batch in batches for step in batch.steps for row in step.rows)
        if most is not None and any(_size(row) >= most for row in rows):
            text = f"a row is larger than the {most} bytes that the server accepts (max_allowed_packet)"
            raise DataError(text) from error

    def _write(self, connection: Connection, batch: TableBatch, step: Step) -> None:
        for rows in parts(step.rows, self.config.batch_size):
            if step.is_delete:
                self._writer.delete(connection, batch.table, keys=batch.keys, rows=rows)
            elif self.config.insert_mode == "insert":
                self._writer.insert(connection, batch.table, columns=step.columns, rows=rows)
            elif self.config.insert_mode == "upsert":
                self._writer.upsert(connection, batch.table, columns=step.columns, rows=rows, keys=batch.keys)
            else:
                self._writer.update(connection, batch.table, columns=step.columns, rows=rows, keys=batch.keys)

    def _fail(self, error: Exception, *, doing: str) -> Exception:
        """The error to raise; prepares for another attempt if it is an outage."""
        mapped = errors.map_error(error, doing=doing, trimmed=self.config.trim_sensitive_log)
        self._forget()
        if not isinstance(mapped, RetriableError):
            return mapped
        self._failures += 1
        is_conflict = errors.is_conflict(error)
        if not is_conflict:
            self._database.disconnect()
        backoff = self.config.retry_backoff_ms
        self.context.retry_after(min(_CONFLICT_PAUSE_MS, backoff) if is_conflict else backoff)
        level = logging.ERROR if self._failures > self.config.max_retries else logging.WARNING
        log.log(level, "cannot write to the database", extra={"error": str(mapped), "failures": self._failures})
        return mapped

    def _forget(self) -> None:
        self._structure.forget()
        self._batcher.forget()
        self._writer.forget()


class SqlSinkConnector(SinkConnector):
    """Writes records to tables of PostgreSQL, MySQL, MariaDB or SQLite."""

    config_class = SqlSinkConfig
    task_class = SqlSinkTask
    aliases = (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
        "io.debezium.connector.jdbc.JdbcSinkConnector",
        "JdbcSinkConnector",
        "JdbcSink",
        "SqlSink",
    )


def parse_table(text: str, *, family: str) -> Table:
    """The table of a name: quoted or not, with its schema or without."""
    if family == "sqlite" and not text.startswith(('"', "`")):
        return Table(name=text)
    found = [match.groups() for match in _NAME_PART.finditer(text)]
    names = [(one or "").replace('""', '"') or (two or "").replace("``", "`") or three for one, two, three in found]
    return Table(name=names[-1], schema=names[-2] if len(names) > 1 else None)


def _size(row: Row) -> int:
    """About how many bytes a row has in a statement."""
    return sum(len(cell.encode() if isinstance(cell, str) else cell) for cell in row if isinstance(cell, str | bytes))
