"""Offsets stored beside the rows: both are committed together, so that no record is written twice.

Each partition has a row with the next offset and an epoch. A task that is assigned a partition increments the epoch; a
task that has lost the partition but still writes finds another epoch than its own, and its transaction is rolled back.
"""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import Connection

from connect.api import data
from connect.api.errors import RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import TopicPartition
from connectors.sql import errors
from connectors.sql.database import Database
from connectors.sql.dialect import NewColumn, Table

_KEYS = ("connector", "topic", "partition")
_COLUMNS = (
    NewColumn(name="connector", schema=data.STRING, is_key=True),
    NewColumn(name="topic", schema=data.STRING, is_key=True),
    NewColumn(name="partition", schema=data.INT32, is_key=True),
    NewColumn(name="offset", schema=data.OPTIONAL_INT64),
    NewColumn(name="epoch", schema=data.INT64),
)


class OffsetTable:
    """The offsets of one connector, and the epochs under which this task writes them."""

    def __init__(self, database: Database, *, table: Table, connector: str) -> None:
        self._database = database
        self._table = table
        self._connector = connector
        self._epochs: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}
        self._pending: Mapping[TopicPartition, int] = {}
        self._is_unsure = False

    def claim(self, places: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Take partitions over; returns the next offsets of those that were written before."""
        self._create()
        found: dict[TopicPartition, int] = {}
        with self._database.transaction() as connection:
            for place in sorted(places):
                offset = self._claim(connection, place)
                if offset is not None:
                    found[place] = offset
        self._next.update(found)
        return found

    def next_offset(self, place: TopicPartition, default: int) -> int:
        """The next offset of a claimed partition, or a default if nothing was written."""
        return self._next.get(place, default)

    def release(self, places: Collection[TopicPartition]) -> None:
        """Give partitions back."""
        for place in places:
            self._epochs.pop(place, None)
            self._next.pop(place, None)

    def without_written(self, records: Iterable[SinkRecord]) -> list[SinkRecord]:
        """Records without those that are stored already, which is asked after a commit with an unknown outcome.

        Older records are kept: they were sent again on purpose.
        """
        if not self._is_unsure:
            return list(records)
        with self._database.transaction() as connection:
            stored = {place: self._read(connection, place)[0] for place in self._epochs}
        self._is_unsure = False
        known, self._next = self._next, {place: offset for place, offset in stored.items() if offset is not None}
        return [
            record
            for record in records
            if not known.get(record.place, 0) <= record.original_offset < self._next.get(record.place, 0)
        ]

    def write(self, connection: Connection, records: Iterable[SinkRecord]) -> None:
        """Advance the offsets past these records, in the transaction that writes them."""
        ends = {record.place: record.original_offset + 1 for record in records}
        dialect, mark = self._database.dialect, self._database.dialect.mark
        offset = dialect.quote("offset")
        larger = f"CASE WHEN {offset} > {mark} THEN {offset} ELSE {mark} END"
        matches = dialect.match((*_KEYS, "epoch"))
        statement = f"UPDATE {dialect.table(self._table)} SET {offset} = {larger} WHERE {matches}"
        for place, end in sorted(ends.items()):
            name, epoch = f"partition {place[0]}-{place[1]}", self._epochs.get(place)
            if epoch is None:
                raise RetriableError(f"{name} does not belong to this task: nothing was written")
            done = connection.exec_driver_sql(statement, (end, end, self._connector, *place, epoch))
            if done.rowcount != 1:
                raise RetriableError(f"another task has taken over {name} (epoch {epoch} is over): nothing was written")
        self._pending = ends

    def mark_committed(self) -> None:
        """The transaction of the last `write` was committed."""
        for place, end in self._pending.items():
            self._next[place] = max(end, self._next.get(place, 0))
        self._pending = {}

    def mark_unsure(self) -> None:
        """It is unknown whether the transaction of the last `write` was committed."""
        self._is_unsure = True

    def _claim(self, connection: Connection, place: TopicPartition) -> int | None:
        dialect = self._database.dialect
        columns = [column.name for column in _COLUMNS]
        table, epoch = dialect.table(self._table), dialect.quote("epoch")
        statement = f"UPDATE {table} SET {epoch} = {epoch} + 1 WHERE {dialect.match(_KEYS)}"
        if connection.exec_driver_sql(statement, (self._connector, *place)).rowcount == 0:
            connection.exec_driver_sql(dialect.insert(self._table, columns), (self._connector, *place, None, 1))
        offset, self._epochs[place] = self._read(connection, place)
        return offset

    def _read(self, connection: Connection, place: TopicPartition) -> tuple[int | None, int]:
        dialect = self._database.dialect
        columns, table = dialect.columns(("offset", "epoch")), dialect.table(self._table)
        statement = f"SELECT {columns} FROM {table} WHERE {dialect.match(_KEYS)}"
        row = connection.exec_driver_sql(statement, (self._connector, *place)).one()
        return row[0], row[1]

    def _create(self) -> None:
        if self._database.definition(self._table) is not None:
            return
        try:
            with self._database.transaction() as connection:
                connection.exec_driver_sql(self._database.dialect.create_table(self._table, _COLUMNS))
        except errors.DRIVER_ERRORS:
            if self._database.definition(self._table) is None:  # Else another task has created it meanwhile.
                raise
