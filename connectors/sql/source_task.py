"""The source's task: looks at its tables in turn."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from connect.api.config import Config
from connect.api.data import Value
from connect.api.errors import ConfigError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceContext, SourceTask
from connectors.sql import errors
from connectors.sql.database import Database
from connectors.sql.dialect import Table
from connectors.sql.position import QUERY_PARTITION, Position, old_partition_of, partition_of
from connectors.sql.source_options import BULK, SqlSourceConfig
from connectors.sql.table_reader import TableReader

log = logging.getLogger(__name__)

_LONGEST_WAIT_SECONDS = 1.0


class SqlSourceTask(SourceTask):
    """Reads rows as records."""

    java_name: ClassVar[str] = "io.confluent.connect.jdbc.source.JdbcSourceTask"
    config: SqlSourceConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, SqlSourceConfig)
        super().__init__(config, context)
        self.config = config
        self._database = Database(config, wait=context.wait, isolation=config.isolation)
        self._readers: list[TableReader] = []

    @override
    def start(self) -> None:
        tables: list[Table | None] = [None] if self.config.query else list(tables_of(self.config.tables or "[]"))
        if not tables:
            raise ConfigError("each task must have at least one table assigned to it or one query specified")
        for table in tables:
            reader = TableReader(self._database, self.config, table=table, report=self._report)
            reader.position = self._position_of(table)
            self._readers.append(reader)

    def _position_of(self, table: Table | None) -> Position:
        if self.config.mode == BULK:
            return Position()
        known = [QUERY_PARTITION] if table is None else [partition_of(table), old_partition_of(table)]
        return Position.from_offset(next(filter(None, map(self.context.offset, known)), None))

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
            if errors.may_be_stale(error):  # a table was dropped or changed; whether to go on, the connector will tell
                raise RetriableError(f"{doing}: {errors.told(error)}") from error
            raise errors.classified(error, doing=doing) from error
        if not reader.is_active:
            pause = 0.0 if reader.has_more else self.config.poll_interval_ms / 1000
            reader.due = time.monotonic() + pause
        return records

    @override
    def stop(self) -> None:
        for reader in self._readers:
            reader.give_up()
        self._database.close()

    def _report(self, data: str, error: Exception, partition: Mapping[str, Value], offset: Mapping[str, Value]) -> None:
        self.context.report(data, error, partition=partition, offset=offset)


def tables_text(tables: Sequence[Table]) -> str:
    """Tables as they stand in the configuration of a task."""
    return json.dumps([[table.schema, table.name] for table in tables])


def tables_of(text: str) -> list[Table]:
    """The tables that stand in the configuration of a task."""
    return [Table(name=name, schema=schema) for schema, name in json.loads(text)]
