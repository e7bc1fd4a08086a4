"""Reads one table or query again and again: each time the new rows, in order, in batches."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from connect.api.data import Value
from connect.api.errors import ConfigError, DataError
from connect.api.record import SourceRecord
from connectors.sql import errors
from connectors.sql.column_types import Kind, from_description, from_values
from connectors.sql.config import BOTH, BULK, INCREMENTING, TIMESTAMP, SqlSourceConfig
from connectors.sql.database import Column, Database, TableDefinition
from connectors.sql.dialect import Table
from connectors.sql.position import QUERY_PARTITION, Position, old_partition_of, partition_of
from connectors.sql.row_schema import ReadColumn, Reading, RowSchema, utc_time
from connectors.sql.select import Criteria, selection, truncate
from connectors.sql.streaming import Stream

log = logging.getLogger(__name__)

_LONG_WAIT_SECONDS = 60.0
Report = Callable[..., None]
"""`SourceContext.report`."""
Row = Sequence[Any]


class TableReader:
    """Reads in windows: a window is a query whose rows are handed out in batches."""

    def __init__(self, database: Database, config: SqlSourceConfig, *, table: Table | None, report: Report) -> None:
        self._database = database
        self._config = config
        self._table = table
        self._report = report
        self._zone = config.zone()
        self._reading = Reading(
            family=database.family,
            zone=self._zone,
            numeric_mapping=config.numeric_mapping,
            granularity=config.timestamp_granularity,
        )
        self.topic = config.topic_prefix + (table.name if table else "")
        self.partition: Mapping[str, str] = QUERY_PARTITION
        if table is not None:
            self.partition = old_partition_of(table) if config.mode == BULK else partition_of(table)
        self.position = Position()
        self.due = 0.0
        """When the next window is due, on the monotonic clock."""
        self._criteria: Criteria | None = None
        self._digits = 6
        self._stream: Stream | None = None
        self._held: list[Row] = []
        self._schema: RowSchema | None = None
        self._signature: object = None
        self._markers = 0
        self._page_is_full = False
        self._held_since: float | None = None

    @property
    def name(self) -> str:
        """The table, for messages."""
        return str(self._table) if self._table else "the query"

    @property
    def is_active(self) -> bool:
        """Whether it is in the middle of a window."""
        return self._stream is not None

    @property
    def has_more(self) -> bool:
        """Whether the last window was only a page of the rows."""
        return self._page_is_full

    def read(self) -> list[SourceRecord]:
        """The next records; fewer than a batch, or none, at the end of a window. Raises the driver's errors."""
        size = self._config.batch_max_rows
        if self._stream is None:
            self._begin()
        assert self._stream is not None
        wanted = size + 1 - len(self._held)
        fetched: list[Row] = self._stream.fetch(wanted) if wanted > 0 else []
        rows = self._held + self._up_to_open(fetched)
        is_last = len(fetched) < wanted or len(rows) < len(self._held) + len(fetched)
        if is_last:
            handed, self._held = rows[:size], rows[size:]
            is_last = not self._held
        else:
            handed, self._held = self._cut(rows, size)
        records = self._records(handed, following=self._held[0] if self._held else None)
        if is_last:
            self._stream.close()
            self._stream = None
            connection = self._database.connection()
            if connection.in_transaction():
                connection.rollback()
        return records

    def give_up(self) -> None:
        """Abandon the window: the next one continues after the last record that was returned."""
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(*errors.DRIVER_ERRORS):
                stream.abandon()
        self._held = []
        self._signature = None
        self._criteria = None
        self._page_is_full = False

    # --- windows ---

    def _begin(self) -> None:
        criteria = self._criteria
        if criteria is None:
            criteria = self._criteria = self._find_criteria()
        connection = self._database.connection()
        if connection.in_transaction():
            connection.rollback()
        end = self._window_end(connection) if criteria.timestamp_columns else None
        initial = self._config.timestamp_initial
        if end is not None and initial is not None and self.position.timestamp is None:
            first = end if initial == -1 else datetime.fromtimestamp(initial / 1000, tz=UTC)
            self.position = Position(timestamp=first, incrementing=self.position.incrementing)
        limit = self._config.batch_max_rows if self._has_pages else None
        chosen = selection(
            criteria, self._database.dialect, position=self.position, end=end, zone=self._zone, limit=limit
        )
        self._stream = Stream(connection, chosen)
        self._update_schema(self._stream)

    @property
    def _has_pages(self) -> bool:
        """Whether windows are pages: a query that stays open would block other writers of SQLite."""
        numbered = self._config.mode in (INCREMENTING, BOTH)
        return self._database.family == "sqlite" and numbered and not self._config.query_suffix

    def _window_end(self, connection: Connection) -> datetime:
        now = connection.exec_driver_sql(self._database.dialect.literal_sql(self._database.dialect.now)).scalar_one()
        # The time of SQLite is in UTC, whatever the zone of the columns.
        end = utc_time(now, zone=UTC if self._database.family == "sqlite" else self._zone)
        if self._database.family == "postgresql" and self._config.open_transactions == "wait":
            oldest = connection.exec_driver_sql(
                "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend' AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
            ).scalar_one()
            if oldest is not None:
                end = min(end, oldest.astimezone(UTC))
            self._warn_if_held_long(is_held=oldest is not None)
        return truncate(end - timedelta(milliseconds=self._config.timestamp_delay_interval_ms), self._digits)

    # --- the definition of the table ---

    def _find_criteria(self) -> Criteria:
        config, table = self._config, self._table
        wants_number = config.mode in (INCREMENTING, BOTH)
        timestamps = config.timestamp_columns_of(table) if config.mode in (TIMESTAMP, BOTH) else ()
        number = config.incrementing_column_of(table) if wants_number else ""
        if table is None:
            return Criteria(
                query=config.query, suffix=config.query_suffix, timestamp_columns=timestamps, incrementing_column=number
            )
        definition = self._database.definition(table)
        if definition is None:
            raise ConfigError(f"table {table} does not exist")
        if wants_number:
            number = number or _generated_column(definition)
        columns = [_column(definition, name) for name in timestamps]
        counter = _column(definition, number) if number else None
        if config.validate_non_null:
            refused = "Cannot make incremental queries using"
            if counter is not None and counter.is_nullable:
                reason = "because this column is nullable."
                raise ConfigError(f"{refused} incrementing column {number} on {table} {reason}")
            if columns and all(column.is_nullable for column in columns):
                reason = "because all of these columns are nullable."
                raise ConfigError(f"{refused} timestamp columns {', '.join(timestamps)} on {table} {reason}")
        self._digits = min((column.resolution_digits for column in columns), default=6)
        can_mark = self._database.family == "postgresql" and not definition.is_view
        return Criteria(
            table=table,
            suffix=config.query_suffix,
            timestamp_columns=tuple(column.name for column in columns),
            incrementing_column=counter.name if counter is not None else "",
            marks_open=can_mark and config.mode == INCREMENTING and config.open_transactions == "wait",
        )

    def _update_schema(self, stream: Stream) -> None:
        """Derive the schema again if the columns are not those of the last window."""
        description = stream.description
        signature = tuple((column[0], column[1]) for column in description)
        if signature == self._signature:
            return
        assert self._criteria is not None
        in_sqlite = self._database.family == "sqlite"
        self._markers = int(self._criteria.marks_open or (in_sqlite and bool(self._criteria.timestamp_columns)))
        columns = [
            ReadColumn(name=column[0], type=from_description(column, family=self._database.family))
            for column in description[: len(description) - self._markers]
        ]
        if self._table is not None:
            definition = self._database.definition_beside(self._table)
            known = definition.columns if definition is not None else {}
            columns = [
                ReadColumn(name=column.name, type=known[column.name].type, is_nullable=known[column.name].is_nullable)
                if column.name in known
                else column
                for column in columns
            ]
        # PostgreSQL's driver returns text for every type that it does not know.
        if self._database.family != "postgresql" and any(column.type.kind is Kind.UNKNOWN for column in columns):
            # Columns without a declared type have that of the values in the first rows.
            self._held = stream.fetch(self._config.batch_max_rows)
            columns = [
                ReadColumn(name=column.name, type=from_values(row[index] for row in self._held))
                if column.type.kind is Kind.UNKNOWN
                else column
                for index, column in enumerate(columns)
            ]
        self._schema = RowSchema(columns, self._reading, name=self._table.name if self._table else None)
        self._signature = signature

    # --- rows ---

    def _up_to_open(self, rows: list[Row]) -> list[Row]:
        """Rows before the first one before which others may still be added; the window ends there."""
        if self._criteria is None or not self._criteria.marks_open:
            return rows
        closed = next((rows[:index] for index, row in enumerate(rows) if row[-1]), rows)
        self._warn_if_held_long(is_held=len(closed) < len(rows))
        return closed

    def _warn_if_held_long(self, *, is_held: bool) -> None:
        """Warn when rows are held back for long: a transaction may have been left open."""
        now = time.monotonic()
        if not is_held:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = now
        elif now - self._held_since > _LONG_WAIT_SECONDS:
            self._held_since = now
            log.warning("rows are held back by an older transaction that is still open", extra={"table": self.name})

    def _cut(self, rows: list[Row], size: int) -> tuple[list[Row], list[Row]]:
        """A batch and the rest. Rows of one timestamp stay together if they can: there is no position between them."""
        if self._config.mode != TIMESTAMP:
            return rows[:size], rows[size:]
        following = self._timestamp(rows[size]) if len(rows) > size else None
        for index in range(min(size, len(rows)), 0, -1):
            timestamp = self._timestamp(rows[index - 1])
            if timestamp != following:
                return rows[:index], rows[index:]
            following = timestamp
        return rows[:size], rows[size:]

    def _records(self, rows: Sequence[Row], *, following: Row | None) -> list[SourceRecord]:
        assert self._schema is not None
        schema, to_value, topic, partition = self._schema.schema, self._schema.value, self.topic, self.partition
        self._page_is_full = self._has_pages and len(rows) >= self._config.batch_max_rows
        records = []
        for row, offset in zip(rows, self._offsets(rows, following), strict=True):
            try:
                value = to_value(row)
            except DataError as error:
                self._report(repr(tuple(row)), error, partition=partition, offset=offset)
                continue
            records.append(
                SourceRecord(
                    topic=topic, value_schema=schema, value=value, source_partition=partition, source_offset=offset
                )
            )
        return records

    def _offsets(self, rows: Sequence[Row], following: Row | None) -> list[Mapping[str, Value]]:
        """The offset of each row; advances the position."""
        mode = self._config.mode
        if mode == BULK or not rows:
            return [{}] * len(rows)
        if mode == TIMESTAMP:
            return self._timestamp_offsets(rows, following)
        assert self._schema is not None
        assert self._criteria is not None
        at = _index(self._schema.names, self._criteria.incrementing_column)
        if mode == INCREMENTING:
            numbers = [_whole(row[at]) for row in rows]
            self.position = Position(incrementing=numbers[-1])
            return [{"incrementing": number} for number in numbers]
        positions = [Position(timestamp=self._timestamp(row), incrementing=_whole(row[at])) for row in rows]
        self.position = positions[-1]
        return [position.to_offset() for position in positions]

    def _timestamp_offsets(self, rows: Sequence[Row], following: Row | None) -> list[Mapping[str, Value]]:
        timestamps = [self._timestamp(row) for row in rows]
        last = None if following is None else self._timestamp(following)
        offsets: list[Mapping[str, Value]] = []
        current = self.position.to_offset()
        for timestamp, next_timestamp in zip(timestamps, [*timestamps[1:], last], strict=True):
            # The position advances past a timestamp only when all of its rows were read.
            if timestamp != next_timestamp:
                self.position = Position(timestamp=timestamp)
                current = self.position.to_offset()
            offsets.append(current)
        return offsets

    def _timestamp(self, row: Row) -> datetime:
        if self._database.family == "sqlite":
            return utc_time(row[-1], zone=self._zone)
        assert self._schema is not None
        assert self._criteria is not None
        for name in self._criteria.timestamp_columns:
            cell = row[_index(self._schema.names, name)]
            if cell is not None:
                return utc_time(cell, zone=self._zone)
        raise DataError(f"a row of {self.name} has no timestamp in {', '.join(self._criteria.timestamp_columns)}")


def _index(names: Sequence[str], name: str) -> int:
    plain = name.rpartition(".")[2] if name not in names else name
    folded = [item.lower() for item in names]
    if plain.lower() not in folded:
        raise ConfigError(f"column {name} is not among the columns: {', '.join(names)}")
    return folded.index(plain.lower())


def _column(definition: TableDefinition, name: str) -> Column:
    column = definition.column(name)
    if column is None:
        raise ConfigError(f"table {definition.table} has no column {name}: {', '.join(definition.columns)}")
    return column


def _generated_column(definition: TableDefinition) -> str:
    """The column whose numbers the database generates, or a primary key of one whole number."""
    generated = [column.name for column in definition.columns.values() if column.is_automatic]
    keys = [name for name in definition.primary_key if definition.columns[name].type.kind.is_integer]
    found = generated or (keys if len(definition.primary_key) == 1 else [])
    if not found:
        raise ConfigError(f"table {definition.table} has no column of generated numbers: set incrementing.column.name")
    return found[0]


def _whole(cell: Any) -> int:
    if cell is None:
        raise DataError("Null value for incrementing column")
    number = int(cell)
    if number != cell:
        raise DataError(f"the incrementing column holds {cell!r}, which is not a whole number")
    return number
