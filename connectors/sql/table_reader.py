"""One table, or one query, that is read again and again: what is new each time, in order, and never all at once."""

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
from connectors.sql.column_types import Kind, from_description
from connectors.sql.config import BOTH, BULK, INCREMENTING, TIMESTAMP, SqlSourceConfig
from connectors.sql.database import Column, Database, TableDefinition
from connectors.sql.dialect import Table
from connectors.sql.position import QUERY_PARTITION, Position, old_partition_of, partition_of
from connectors.sql.row_schema import ReadColumn, Reading, RowSchema, moment_of
from connectors.sql.select import Criteria, selection, truncated
from connectors.sql.streaming import Stream
from connectors.sql.value_types import seen_type

log = logging.getLogger(__name__)

_LONG_WAIT_SECONDS = 60.0
Report = Callable[[str, Exception, Mapping[str, Value], Mapping[str, Value]], None]
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
        self.partition = _partition(config, table)
        self.position = Position()
        self.due = 0.0
        """When the next window is to be read, in seconds since an arbitrary start."""
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
        """What it reads, for people."""
        return str(self._table) if self._table else "the query"

    @property
    def is_active(self) -> bool:
        """Whether it is in the middle of a window."""
        return self._stream is not None

    @property
    def has_more(self) -> bool:
        """Whether the window that has ended was only a page of what there is."""
        return self._page_is_full

    def read(self) -> list[SourceRecord]:
        """The next records; less than a batch, or none, at the end of a window. Errors are the driver's."""
        size = self._config.batch_max_rows
        if self._stream is None:
            self._begin()
        assert self._stream is not None
        wanted = size + 1 - len(self._held)
        fetched: list[Row] = self._stream.fetch(wanted) if wanted > 0 else []
        rows = self._held + self._closed(fetched)
        is_last = len(fetched) < wanted or len(rows) < len(self._held) + len(fetched)
        if is_last:
            handed, self._held = rows[:size], rows[size:]
            is_last = not self._held
        else:
            handed, self._held = self._cut(rows, size)
        records = self._records(handed, following=self._held[0] if self._held else None)
        if is_last:
            self._end()
        return records

    def give_up(self) -> None:
        """Forget the window: the next one goes on behind the last record that was handed out."""
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
            criteria = self._criteria = self._described()
        connection = self._database.connection()
        if connection.in_transaction():
            connection.rollback()
        end = self._end_of_window(connection) if criteria.timestamp_columns else None
        self._begin_from_initial(end)
        limit = self._config.batch_max_rows if self._pages else None
        chosen = selection(
            criteria, self._database.dialect, position=self.position, end=end, zone=self._zone, limit=limit
        )
        self._stream = Stream(connection, chosen)
        self._understand(self._stream)

    @property
    def _pages(self) -> bool:
        """Whether windows are pages: a query that stays open would keep others from writing to SQLite."""
        numbered = self._config.mode in (INCREMENTING, BOTH)
        return self._database.family == "sqlite" and numbered and not self._config.query_suffix

    def _end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        connection = self._database.connection()
        if connection.in_transaction():
            connection.rollback()

    def _end_of_window(self, connection: Connection) -> datetime:
        now = connection.exec_driver_sql(self._database.dialect.literal_sql(self._database.dialect.now)).scalar_one()
        # SQLite tells the time in UTC, whatever the zone of the columns.
        moment = moment_of(now, zone=UTC if self._database.family == "sqlite" else self._zone)
        if self._database.family == "postgresql" and self._config.open_transactions == "wait":
            oldest = connection.exec_driver_sql(
                "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend' AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
            ).scalar_one()
            if oldest is not None:
                moment = min(moment, oldest.astimezone(UTC))
            self._note_wait(is_held=oldest is not None)
        delayed = moment - timedelta(milliseconds=self._config.timestamp_delay_interval_ms)
        return truncated(delayed, self._digits)

    def _begin_from_initial(self, end: datetime | None) -> None:
        initial = self._config.timestamp_initial
        if end is None or initial is None or self.position.timestamp is not None:
            return
        moment = end if initial == -1 else datetime.fromtimestamp(initial / 1000, tz=UTC)
        self.position = Position(timestamp=moment, incrementing=self.position.incrementing)

    # --- what the table looks like ---

    def _described(self) -> Criteria:
        config, table = self._config, self._table
        wants_moment, wants_number = config.mode in (TIMESTAMP, BOTH), config.mode in (INCREMENTING, BOTH)
        moments = config.timestamp_columns_of(table) if wants_moment else ()
        number = config.incrementing_column_of(table) if wants_number else ""
        if table is None:
            return Criteria(
                query=config.query, suffix=config.query_suffix, timestamp_columns=moments, incrementing_column=number
            )
        definition = self._database.definition(table)
        if definition is None:
            raise ConfigError(f"table {table} does not exist")
        if wants_number:
            number = number or _automatic(definition)
        self._check(definition, moments, number)
        self._digits = min((_known(definition, name).resolution_digits for name in moments), default=6)
        can_mark = self._database.family == "postgresql" and not definition.is_view
        return Criteria(
            table=table,
            suffix=config.query_suffix,
            timestamp_columns=tuple(_known(definition, name).name for name in moments),
            incrementing_column=_known(definition, number).name if number else "",
            marks_open=can_mark and config.mode == INCREMENTING and config.open_transactions == "wait",
        )

    def _check(self, definition: TableDefinition, moments: Sequence[str], number: str) -> None:
        if not self._config.validate_non_null:
            return
        if number and _known(definition, number).is_nullable:
            told = f"Cannot make incremental queries using incrementing column {number} on {definition.table}"
            raise ConfigError(f"{told} because this column is nullable.")
        if moments and all(_known(definition, name).is_nullable for name in moments):
            told = f"Cannot make incremental queries using timestamp columns {', '.join(moments)} on {definition.table}"
            raise ConfigError(f"{told} because all of these columns are nullable.")

    def _understand(self, stream: Stream) -> None:
        """Work out the schema when the columns are not those of the last window."""
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
            columns = self._as_defined(columns, self._table)
        # PostgreSQL's driver gives text for all that it does not know.
        if self._database.family != "postgresql" and any(column.type.kind is Kind.UNKNOWN for column in columns):
            columns = self._as_seen(columns, stream)
        self._schema = RowSchema(columns, self._reading, name=self._table.name if self._table else None)
        self._signature = signature

    def _as_defined(self, columns: Sequence[ReadColumn], table: Table) -> list[ReadColumn]:
        definition = self._database.definition_beside(table)
        known = definition.columns if definition is not None else {}
        return [
            ReadColumn(name=column.name, type=known[column.name].type, is_nullable=known[column.name].is_nullable)
            if column.name in known
            else column
            for column in columns
        ]

    def _as_seen(self, columns: Sequence[ReadColumn], stream: Stream) -> list[ReadColumn]:
        """Types that nobody declared, from the first rows."""
        self._held = stream.fetch(self._config.batch_max_rows)
        return [
            ReadColumn(name=column.name, type=seen_type(row[index] for row in self._held))
            if column.type.kind is Kind.UNKNOWN
            else column
            for index, column in enumerate(columns)
        ]

    # --- rows ---

    def _closed(self, rows: list[Row]) -> list[Row]:
        """Rows up to the first that others may still come before; the window ends there."""
        if self._criteria is None or not self._criteria.marks_open:
            return rows
        closed = next((rows[:index] for index, row in enumerate(rows) if row[-1]), rows)
        self._note_wait(is_held=len(closed) < len(rows))
        return closed

    def _note_wait(self, *, is_held: bool) -> None:
        """Tell an operator when rows are held back for long: somebody may have forgotten a transaction."""
        now = time.monotonic()
        if not is_held:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = now
        elif now - self._held_since > _LONG_WAIT_SECONDS:
            self._held_since = now
            log.warning("rows are not read while a transaction is open that began before", extra={"table": self.name})

    def _cut(self, rows: list[Row], size: int) -> tuple[list[Row], list[Row]]:
        """A batch and the rest. Rows of one moment stay together where they can: no position is between them."""
        if self._config.mode != TIMESTAMP:
            return rows[:size], rows[size:]
        following = self._moment(rows[size]) if len(rows) > size else None
        for index in range(min(size, len(rows)), 0, -1):
            moment = self._moment(rows[index - 1])
            if moment != following:
                return rows[:index], rows[index:]
            following = moment
        return rows[:size], rows[size:]

    def _records(self, rows: Sequence[Row], *, following: Row | None) -> list[SourceRecord]:
        assert self._schema is not None
        schema, to_value, topic, partition = self._schema.schema, self._schema.value, self.topic, self.partition
        self._page_is_full = self._pages and len(rows) >= self._config.batch_max_rows
        records = []
        for row, offset in zip(rows, self._offsets(rows, following), strict=True):
            try:
                value = to_value(row)
            except DataError as error:
                self._report(repr(tuple(row)), error, partition, offset)
                continue
            records.append(
                SourceRecord(
                    topic=topic, value_schema=schema, value=value, source_partition=partition, source_offset=offset
                )
            )
        return records

    def _offsets(self, rows: Sequence[Row], following: Row | None) -> list[Mapping[str, Value]]:
        """The offset of each row; the position moves along."""
        mode = self._config.mode
        if mode == BULK or not rows:
            return [{}] * len(rows)
        if mode == INCREMENTING:
            at = self._index_of_number()
            numbers = [_whole(row[at]) for row in rows]
            self.position = Position(incrementing=numbers[-1])
            return [{"incrementing": number} for number in numbers]
        if mode == BOTH:
            at = self._index_of_number()
            positions = [Position(timestamp=self._moment(row), incrementing=_whole(row[at])) for row in rows]
            self.position = positions[-1]
            return [position.to_offset() for position in positions]
        return self._offsets_of_moments(rows, following)

    def _offsets_of_moments(self, rows: Sequence[Row], following: Row | None) -> list[Mapping[str, Value]]:
        moments = [self._moment(row) for row in rows]
        last = None if following is None else self._moment(following)
        offsets: list[Mapping[str, Value]] = []
        current = self.position.to_offset()
        for moment, next_moment in zip(moments, [*moments[1:], last], strict=True):
            # Only when every row of a moment was read is it safe to go on behind it.
            if moment != next_moment:
                self.position = Position(timestamp=moment)
                current = self.position.to_offset()
            offsets.append(current)
        return offsets

    def _moment(self, row: Row) -> datetime:
        if self._database.family == "sqlite":
            return moment_of(row[-1], zone=self._zone)
        assert self._schema is not None
        assert self._criteria is not None
        for name in self._criteria.timestamp_columns:
            cell = row[_index(self._schema.names, name)]
            if cell is not None:
                return moment_of(cell, zone=self._zone)
        raise DataError(f"a row of {self.name} has no timestamp in {', '.join(self._criteria.timestamp_columns)}")

    def _index_of_number(self) -> int:
        assert self._schema is not None
        assert self._criteria is not None
        return _index(self._schema.names, self._criteria.incrementing_column)


def _partition(config: SqlSourceConfig, table: Table | None) -> Mapping[str, str]:
    if table is None:
        return QUERY_PARTITION
    return old_partition_of(table) if config.mode == BULK else partition_of(table)


def _index(names: Sequence[str], name: str) -> int:
    plain = name.rpartition(".")[2] if name not in names else name
    folded = [item.lower() for item in names]
    if plain.lower() not in folded:
        raise ConfigError(f"column {name} is not among the columns: {', '.join(names)}")
    return folded.index(plain.lower())


def _known(definition: TableDefinition, name: str) -> Column:
    column = definition.column(name)
    if column is None:
        raise ConfigError(f"table {definition.table} has no column {name}: {', '.join(definition.columns)}")
    return column


def _automatic(definition: TableDefinition) -> str:
    """The column that the database counts, or a primary key of one whole number."""
    counted = [column.name for column in definition.columns.values() if column.is_automatic]
    keys = [name for name in definition.primary_key if definition.columns[name].type.kind.is_integer]
    found = counted or (keys if len(definition.primary_key) == 1 else [])
    if not found:
        raise ConfigError(f"table {definition.table} has no column that is counted; set incrementing.column.name")
    return found[0]


def _whole(cell: Any) -> int:
    if cell is None:
        raise DataError("Null value for incrementing column")
    number = int(cell)
    if number != cell:
        raise DataError(f"the incrementing column holds {cell!r}, which is no whole number")
    return number
