"""A file of SQLite with the rows of one table, and the positions in its topic up to which they are complete.

Rows and positions change in the same transaction. With a write-ahead log readers do not wait for the writer, and a
process that is killed leaves the last whole transaction.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NamedTuple, Self, TypeAlias, cast

from streams.materialized.errors import CopyDamaged

_SCHEMA: Final = """
CREATE TABLE rows (
    key BLOB NOT NULL, window_start INTEGER NOT NULL, window_end INTEGER NOT NULL,
    rowtime INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, window_start, window_end)
) WITHOUT ROWID;
CREATE TABLE positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
_TABLES: Final = ("rows", "positions", "facts")
_WRITER: Final = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA journal_size_limit=67108864")
_READER: Final = ("PRAGMA query_only=1",)
_WAIT_SECONDS: Final = 5.0
_IDLE_MAX: Final = 8
"""How many connections of readers are kept."""
_DAMAGES: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_READONLY_DBMOVED")
_STALE: Final = "SQLITE_ERROR"
"""The schema is another one."""

Place = tuple[bytes, int, int]
"""The primary key: key, start and end of the window, which are 0 for tables without windows."""


class StoredRow(NamedTuple):
    """A row of the file."""

    key: bytes
    window_start: int
    window_end: int
    rowtime: int
    data: bytes


class Condition(NamedTuple):
    """What has to hold for a column of the file: `window_start`, `window_end` or `rowtime`."""

    column: str
    operator: str
    number: int


WindowColumn: TypeAlias = Literal["window_start", "window_end"]


class Store:
    """The file of one table. One thread writes, any number reads; raises CopyDamaged and sqlite3.Error."""

    def __init__(self, path: Path, description: str, *, expires_by: WindowColumn | None = None) -> None:
        """Open the file, or make it; if its description differs from this one, it begins empty.

        `expires_by` says how old the rows of a windowed table are.
        """
        self._path = path
        self._expires_by = expires_by
        self._lock = Lock()
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False
        self.version = 0
        """Another number whenever rows have changed since it was opened."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with _detecting_damage():
            self._writer = self._connect(_WRITER)
            try:
                if self._stored_description() != description:
                    self._make(description)
                self.positions: dict[int, int] = dict(self._writer.execute("SELECT partition, next FROM positions"))
            except BaseException:
                self._writer.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; readers finish what they have begun."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        self._writer.close()

    @staticmethod
    def delete(path: Path) -> None:
        """Remove a file."""
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    # --- writing ---

    def write(
        self,
        rows: Sequence[StoredRow],
        deleted: Sequence[Place],
        *,
        positions: Mapping[int, int],
        facts: Mapping[str, str | int],
        expired_until_ms: int | None = None,
    ) -> None:
        """Change rows, move on the positions, note facts and remove windows up to a time, all or nothing."""
        with _detecting_damage(), self._transaction() as connection:
            connection.executemany("DELETE FROM rows WHERE (key, window_start, window_end) = (?, ?, ?)", deleted)
            connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)", rows)
            expired = 0
            if self._expires_by is not None and expired_until_ms is not None:
                text = f"DELETE FROM rows WHERE {self._expires_by} <= ?"
                expired = connection.execute(text, (expired_until_ms,)).rowcount
            connection.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?)", positions.items())
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        self.positions.update(positions)
        if rows or deleted or expired:
            self.version += 1

    def clear(self, description: str) -> None:
        """Begin anew, for another description."""
        with _detecting_damage():
            self._make(description)
        self.positions = {}
        self.version += 1

    def _make(self, description: str) -> None:
        with self._transaction() as connection:
            for table in _TABLES:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            if self._expires_by is not None:
                connection.execute(f"CREATE INDEX rows_by_age ON rows ({self._expires_by})")
            connection.execute("INSERT INTO facts VALUES ('description', ?)", (description,))

    def _stored_description(self) -> str | None:
        try:
            found = self._writer.execute("SELECT value FROM facts WHERE name = 'description'").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname == _STALE:
                return None
            raise
        return None if found is None else str(found[0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    # --- reading ---

    def fact(self, name: str) -> str | int | None:
        """A fact that was noted."""
        with self._reader() as connection:
            found = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else cast("str | int", found[0])

    def count(self) -> int:
        """How many rows there are."""
        with self._reader() as connection:
            (found,) = connection.execute("SELECT count(*) FROM rows").fetchone()
        return int(found)

    def find(self, key: bytes, conditions: Sequence[Condition] = ()) -> list[StoredRow]:
        """The rows of a key, by their windows."""
        text = "SELECT * FROM rows WHERE key = ?" + "".join(f" AND {c.column} {c.operator} ?" for c in conditions)
        with self._reader() as connection:
            found = connection.execute(text, (key, *(c.number for c in conditions))).fetchall()
        return [StoredRow(*row) for row in found]

    def page(self, after: Place | None, count: int, conditions: Sequence[Condition] = ()) -> list[StoredRow]:
        """The next rows behind one, in the order of their keys' bytes."""
        # The plus keeps SQLite from walking along another index, after which it would have to sort.
        text = (
            "SELECT * FROM rows WHERE (key, window_start, window_end) > (?, ?, ?)"
            + "".join(f" AND +{c.column} {c.operator} ?" for c in conditions)
            + " ORDER BY key, window_start, window_end LIMIT ?"
        )
        begin: Place = (b"", 0, 0) if after is None else after
        with self._reader() as connection:
            found = connection.execute(text, (*begin, *(c.number for c in conditions), count)).fetchall()
        return [StoredRow(*row) for row in found]

    def all_rows(self, chunk: int) -> Iterator[list[StoredRow]]:
        """All rows as they are at one moment; the log grows until the end has been reached."""
        with self._reader() as connection, closing(connection.execute("SELECT * FROM rows")) as cursor:
            while found := cursor.fetchmany(chunk):
                yield [StoredRow(*row) for row in found]

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with _detecting_damage():
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self._connect(_READER)
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            with self._lock:
                is_kept = not self._is_closed and len(self._idle) < _IDLE_MAX
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def _connect(self, pragmas: Sequence[str]) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for pragma in pragmas:
                connection.execute(pragma).close()
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def _detecting_damage() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(_DAMAGES):
            raise CopyDamaged(f"the file of the copy is damaged: {error}") from error
        raise
