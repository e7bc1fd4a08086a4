"""JdbcSource: the connector finds tables and assigns them to tasks; a task polls its tables in turn."""

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from typing_extensions import override

from connect.api.config import Config
from connect.api.connector import ConnectorContext
from connect.api.errors import ConfigError, ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceContext, SourceOffset, SourcePartition, SourceTask
from connectors.sql import errors
from connectors.sql.config import BULK, SqlSourceConfig
from connectors.sql.database import Database
from connectors.sql.dialect import Table
from connectors.sql.position import QUERY_PARTITION, Position, check_altered, old_partition_of, partition_of
from connectors.sql.table_reader import TableReader

log = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS: Final = 1.0
_LONGEST_STOP_SECONDS: Final = 10.0
_PAUSE_AFTER_ERROR_SECONDS: Final = 5.0


class SqlSourceTask(SourceTask):
    """Reads rows as records."""

    java_name: ClassVar[str] = "io.confluent.connect.jdbc.source.JdbcSourceTask"
    config: SqlSourceConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, SqlSourceConfig)
        super().__init__(config, context)
        self._database = Database(config, wait=context.wait, isolation=config.isolation)
        self._readers: list[TableReader] = []

    @override
    def start(self) -> None:
        names = json.loads(self.config.tables or "[]")
        tables = [None] if self.config.query else [Table(name=name, schema=schema) for schema, name in names]
        if not tables:
            raise ConfigError("each task must have at least one table assigned to it or one query specified")
        for table in tables:
            reader = TableReader(self._database, self.config, table=table, report=self.context.report)
            if self.config.mode != BULK:
                known = [QUERY_PARTITION] if table is None else [partition_of(table), old_partition_of(table)]
                reader.position = Position.from_offset(next(filter(None, map(self.context.offset, known)), None))
            self._readers.append(reader)

    @override
    def poll(self) -> Sequence[SourceRecord]:
        reader = next((reader for reader in self._readers if reader.is_active), None)
        if reader is None:
            reader = min(self._readers, key=lambda reader: reader.due)
            pause = reader.due - time.monotonic()
            if pause > 0:
                self.context.wait(min(pause, _LONGEST_WAIT_SECONDS))
                if pause > _LONGEST_WAIT_SECONDS or reader.due > time.monotonic():
                    return []
        return self._read(reader)

    def _read(self, reader: TableReader) -> Sequence[SourceRecord]:
        try:
            records = reader.read()
        except (*errors.DRIVER_ERRORS, RetriableError) as error:
            reader.give_up()
            self._database.disconnect()
            reader.due = time.monotonic() + self.config.poll_interval_ms / 1000
            doing = f"cannot read {reader.name}"
            if errors.may_be_stale(error):  # The table was dropped or altered: the connector plans again if need be.
                raise RetriableError(f"{doing}: {errors.describe(error)}") from error
            raise errors.map_error(error, doing=doing) from error
        if not reader.is_active:
            pause = 0.0 if reader.has_more else self.config.poll_interval_ms / 1000
            reader.due = time.monotonic() + pause
        return records

    @override
    def stop(self) -> None:
        for reader in self._readers:
            reader.give_up()
        self._database.close()


def format_tables(tables: Sequence[Table]) -> str:
    """Tables as they are written in the configuration of a task."""
    return json.dumps([[table.schema, table.name] for table in tables])


class SqlSourceConnector(SourceConnector):
    """Reads rows from tables of PostgreSQL, MySQL, MariaDB or SQLite."""

    config_class = SqlSourceConfig
    task_class = SqlSourceTask
    is_exactly_once = True
    tasks_limit = None
    aliases = (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
        "JdbcSourceConnector",
        "JdbcSource",
        "SqlSource",
    )

    config: SqlSourceConfig

    def __init__(self, config: Config, context: ConnectorContext) -> None:
        super().__init__(config, context)
        self._tables: list[Table] = []
        self._planned: list[Table] | None = None
        """The tables of the last plan, or of the plan that was asked for."""
        self._seen = threading.Event()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    @override
    def start(self) -> None:
        if not self.config.query:
            self._watcher = threading.Thread(target=self._watch, name=f"tables of {self.context.name}", daemon=True)
            self._watcher.start()

    @override
    def task_configs(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        given = dict(self.config.given)
        if self.config.query:
            return [given]
        self._seen.wait(self.config.table_monitoring_startup_polling_limit_ms / 1000)
        # Without tables there is nothing to do yet: when there are some, the watcher asks for another plan.
        tables = self._planned = self._tables
        duplicates = [name for name, count in Counter(table.name for table in tables).items() if count > 1]
        if duplicates:
            raise ConfigError(
                "topics are named after tables, but several schemas have tables of the same name: "
                f"{', '.join(duplicates)}; choose with schema.pattern or table.whitelist"
            )
        count, total = min(len(tables), tasks_max), len(tables)
        shares = [tables[index * total // count : (index + 1) * total // count] for index in range(count)]
        return [{**given, "tables": format_tables(share)} for share in shares]

    @override
    def stop(self) -> None:
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join(timeout=_LONGEST_STOP_SECONDS)

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        for partition, offset in offsets:
            check_altered(partition, offset)
        return False

    def _watch(self) -> None:
        database = Database(self.config, wait=self._stopping.wait)
        try:
            while not self._stopping.is_set():
                self._stopping.wait(self._look(database))
        finally:
            database.close()

    def _look(self, database: Database) -> float:
        """See which tables there are; returns after how many seconds to look again."""
        interval = self.config.table_poll_interval_ms / 1000
        try:
            tables = [table for table in database.tables() if self.config.wants(table)]
        except (*errors.DRIVER_ERRORS, ConnectError) as error:
            database.disconnect()
            extra = {"connector": self.context.name, "error": errors.describe(error)}
            log.warning("cannot list tables", extra=extra)
            return min(_PAUSE_AFTER_ERROR_SECONDS, interval)
        self._tables = tables
        self._seen.set()
        if self._planned is not None and self._planned != tables:
            self._planned = tables
            log.info("the list of tables has changed", extra={"connector": self.context.name, "tables": len(tables)})
            self.context.request_reconfiguration()
        return interval
