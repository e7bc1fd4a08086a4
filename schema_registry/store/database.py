"""The database: SQLite in a file for one registry, PostgreSQL for several.

Reads see each statement's newest committed state. A write is a function that runs in one transaction and may run more
than once: it must change nothing but the database.
"""

import logging
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from schema_registry.errors import RegistryError
from schema_registry.store import migrations
from schema_registry.store.failures import Failure, as_registry_error, classify
from schema_registry.store.turn import Turns

log = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS_AFTER_RACES = 10
_ATTEMPTS_AFTER_DISCONNECTS = 5
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
_SESSION = (
    "SET statement_timeout = '{timeout}ms'",
    "SET lock_timeout = '{timeout}ms'",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET synchronous_commit = 'on'",
)


class Database:
    """Connections to where schemas are kept."""

    def __init__(self, url: str, *, pool_size: int = 16, timeout_seconds: float = 15) -> None:
        """Connects to nothing yet: `migrate` does, or the first read."""
        parsed = _parsed(url)
        self._timeout_seconds = timeout_seconds
        self._is_closing = threading.Event()
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        # SQLite has one writer and lets others poll; queueing here is fair and wakes at once.
        self._turns = Turns() if self.is_sqlite else None
        make = _sqlite_engine if self.is_sqlite else _postgresql_engine
        self._engine = make(parsed, pool_size, timeout_seconds)
        # Reads need no transaction: one round trip instead of three.
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    def migrate(self) -> None:
        """Bring the tables to what this code needs; does nothing quickly when they are there."""
        with self.read() as connection:
            if migrations.is_newest(connection):
                return
        self.write(migrations.upgrade)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading; each statement sees what is committed by then."""
        try:
            with self._reader.connect() as connection:
                yield connection
        except (SQLAlchemyError, TimeoutError) as error:
            raise as_registry_error(error) from error

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, again after lost races and connections; commits unless it raises."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._write_once(work)
            except (SQLAlchemyError, TimeoutError) as error:
                if attempt >= _attempts(classify(error)):
                    raise as_registry_error(error) from error
                log.debug("transaction is run again", extra={"attempt": attempt, "reason": str(error)})
            self._pause(attempt)

    def ping(self) -> None:
        """Raises RegistryError when the database does not answer."""
        with self.read() as connection:
            connection.exec_driver_sql("SELECT name FROM subjects LIMIT 1")  # a constant needs no look at SQLite's file

    def close(self) -> None:
        """Close all connections."""
        self._is_closing.set()
        self._engine.dispose()

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        turn = self._turns.take(timeout_seconds=self._timeout_seconds) if self._turns else nullcontext()
        with turn, self._engine.connect() as connection:
            with connection.begin() as transaction:
                if self.is_sqlite:
                    # Here and not on SQLAlchemy's event, which would cost every statement a look at its listeners.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                result = work(connection)
                try:
                    transaction.commit()
                except SQLAlchemyError as error:
                    if classify(error) is Failure.DISCONNECTED:
                        raise _outcome_unknown() from error
                    raise
            return result

    def _pause(self, attempt: int) -> None:
        longest = min(_FIRST_PAUSE_SECONDS * 2**attempt, _LONGEST_PAUSE_SECONDS)
        self._is_closing.wait(random.uniform(longest / 2, longest))


def _attempts(failure: Failure) -> int:
    if failure is Failure.RACE:
        return _ATTEMPTS_AFTER_RACES
    return _ATTEMPTS_AFTER_DISCONNECTS if failure is Failure.DISCONNECTED else 1


def _outcome_unknown() -> RegistryError:
    return RegistryError(
        50001, "The connection to the database broke during the commit: whether it was done is unknown."
    )


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError("database.url is no URL: use sqlite:///file or postgresql://user@host/name") from error
    if parsed.drivername in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ValueError(f"database.url: {parsed.drivername} is not supported: use sqlite:///file or postgresql://…")
    if parsed.get_backend_name() == "sqlite" and (parsed.database or ":memory:") == ":memory:":
        raise ValueError("database.url: SQLite needs a file: sqlite:///path")
    return parsed


def _sqlite_engine(url: URL, pool_size: int, timeout_seconds: float) -> Engine:
    folder = Path(url.database or "").absolute().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"database.url: the folder {folder} cannot be made: {error.strerror}") from error
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=timeout_seconds,
        connect_args={"timeout": timeout_seconds, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power loss
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16384")

    return engine


def _postgresql_engine(url: URL, pool_size: int, timeout_seconds: float) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=timeout_seconds,
        pool_pre_ping=True,
        pool_use_lifo=True,  # those in use stay few, and have their statements prepared
        pool_recycle=1800,
        isolation_level="READ COMMITTED",
        connect_args={
            "connect_timeout": 5,
            "keepalives_idle": 30,
            "tcp_user_timeout": 30_000,
            "client_encoding": "utf8",  # where the database has no encoding, texts would be bytes
        },
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        was_autocommit, connection.autocommit = connection.autocommit, True
        with connection.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement.format(timeout=max(1, round(timeout_seconds * 1000))))
        connection.autocommit = was_autocommit

    return engine
