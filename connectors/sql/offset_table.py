"""Offsets beside the rows that they belong to: both are committed together, so no record is written twice.

Each partition has a row with the next offset and an epoch. A task that is given a partition counts the epoch up; one
that still writes for it, though it has lost it, finds another epoch than its own, and its transaction comes to nothing.
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
        self._moving: Mapping[TopicPartition, int] = {}
        self._unsure = False

    def claim(self, places: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """These partitions are ours from now on; returns where to go on, of those that were written before."""
        self._create()
        found: dict[TopicPartition, int] = {}
        with self._database.transaction() as connection:
            for place in sorted(places):
                offset = self._claim(connection, place)
                if offset is not None:
                    found[place] = offset
        self._next.update(found)
        return found

    def next_of(self, place: TopicPartition, default: int) -> int:
        """The next offset of a partition of ours, as far as it is known."""
        return self._next.get(place, default)

    def release(self, places: Collection[TopicPartition]) -> None:
        """These partitions are no longer ours."""
        for place in places:
            self._epochs.pop(place, None)
            self._next.pop(place, None)

    def unwritten(self, records: Iterable[SinkRecord]) -> list[SinkRecord]:
        """Records without those that are known to be written; asks the database after a commit of unknown end.

        Older records, which somebody sends again on purpose, are not held back.
        """
        if not self._unsure:
            return list(records)
        with self._database.transaction() as connection:
            stored = {place: self._read(connection, place)[0] for place in self._epochs}
        self._unsure = False
        known, self._next = self._next, {place: offset for place, offset in stored.items() if offset is not None}
        return [
            record
            for record in records
            if not known.get(record.place, 0) <= record.original_offset < self._next.get(record.place, 0)
        ]

    def write(self, connection: Connection, records: Iterable[SinkRecord]) -> None:
        """Move the offsets behind these records, in the transaction that writes them."""
        ends = {record.place: record.original_offset + 1 for record in records}
        for place, end in sorted(ends.items()):
            self._move(connection, place, end)
        self._moving = ends

    def is_committed(self) -> None:
        """The transaction of the last `write` has been committed."""
        for place, end in self._moving.items():
            self._next[place] = max(end, self._next.get(place, 0))
        self._moving = {}

    def is_unsure(self) -> None:
        """The transaction of the last `write` may have been committed or not."""
        self._unsure = True

    def _move(self, connection: Connection, place: TopicPartition, end: int) -> None:
        dialect, mark = self._database.dialect, self._database.dialect.mark
        offset = dialect.quote("offset")
        larger = f"CASE WHEN {offset} > {mark} THEN {offset} ELSE {mark} END"
        matches = " AND ".join(f"{dialect.quote(name)} = {mark}" for name in (*_KEYS, "epoch"))
        statement = f"UPDATE {dialect.table(self._table)} SET {offset} = {larger} WHERE {matches}"
        mine = self._epochs.get(place)
        if mine is None:
            raise RetriableError(f"partition {place[0]}-{place[1]} does not belong to this task: nothing was written")
        done = connection.exec_driver_sql(statement, (end, end, *self._key(place), mine))
        if done.rowcount != 1:
            told = f"another task has taken over partition {place[0]}-{place[1]}"
            raise RetriableError(f"{told} (epoch {mine} is over): nothing was written")

    def _claim(self, connection: Connection, place: TopicPartition) -> int | None:
        dialect = self._database.dialect
        columns = [column.name for column in _COLUMNS]
        table, mark, epoch = dialect.table(self._table), dialect.mark, dialect.quote("epoch")
        matches = " AND ".join(f"{dialect.quote(name)} = {mark}" for name in _KEYS)
        changed = connection.exec_driver_sql(
            f"UPDATE {table} SET {epoch} = {epoch} + 1 WHERE {matches}", self._key(place)
        )
        if changed.rowcount == 0:
            connection.exec_driver_sql(dialect.insert(self._table, columns), (*self._key(place), None, 1))
        offset, self._epochs[place] = self._read(connection, place)
        return offset

    def _read(self, connection: Connection, place: TopicPartition) -> tuple[int | None, int]:
        dialect = self._database.dialect
        matches = " AND ".join(f"{dialect.quote(name)} = {dialect.mark}" for name in _KEYS)
        statement = f"SELECT {dialect.columns(('offset', 'epoch'))} FROM {dialect.table(self._table)} WHERE {matches}"
        row = connection.exec_driver_sql(statement, self._key(place)).one()
        return row[0], row[1]

    def _key(self, place: TopicPartition) -> tuple[str, str, int]:
        return (self._connector, *place)

    def _create(self) -> None:
        if self._database.definition(self._table) is not None:
            return
        try:
            with self._database.transaction() as connection:
                connection.exec_driver_sql(self._database.dialect.create_table(self._table, _COLUMNS))
        except errors.DRIVER_ERRORS:
            if self._database.definition(self._table) is None:  # not because another task was faster
                raise
