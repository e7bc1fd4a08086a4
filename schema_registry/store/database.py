"""The database: SQLite in a file for one registry, PostgreSQL for several.

Each statement of a read sees the newest committed state. A write is a function that runs in one transaction and may run
more than once, so it must change nothing but the database.
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
from schema_registry.store.fair_lock import FairLock

log = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = {Failure.RACE: 10, Failure.DISCONNECTED: 5}
"""How often a transaction is tried; after any other failure only once."""
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
_SESSION = (
    "SET statement_timeout = '{timeout}ms'",
    "SET lock_timeout = '{timeout}ms'",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET synchronous_commit = 'on'",
)


class Database:
    """The registry's connections to its database."""

    def __init__(self, url: str, *, pool_size: int = 16, timeout_seconds: float = 15) -> None:
        """Does not connect yet: `migrate` does, or the first read."""
        parsed = _parse_url(url)
        self._timeout_seconds = timeout_seconds
        self._is_closing = threading.Event()
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        # SQLite has one writer and makes the others poll; a lock of our own is fair and wakes them at once.
        self._write_lock = FairLock() if self.is_sqlite else None
        make = _sqlite_engine if self.is_sqlite else _postgresql_engine
        self._engine = make(parsed, pool_size, timeout_seconds)
        # Reads need no transaction: one round trip instead of three.
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    def migrate(self) -> None:
        """Create or upgrade the tables; quick when they are up to date."""
        with self.read() as connection:
            if migrations.is_newest(connection):
                return
        self.write(migrations.upgrade)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading; each statement sees everything that was committed before it."""
        try:
            with self._reader.connect() as connection:
                yield connection
        except (SQLAlchemyError, TimeoutError) as error:
            raise as_registry_error(error) from error

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction and commit it; retried after conflicts and lost connections."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._write_once(work)
            except (SQLAlchemyError, TimeoutError) as error:
                if attempt >= _ATTEMPTS.get(classify(error), 1):
                    raise as_registry_error(error) from error
                log.debug("retrying transaction", extra={"attempt": attempt, "reason": str(error)})
            longest = min(_FIRST_PAUSE_SECONDS * 2**attempt, _LONGEST_PAUSE_SECONDS)
            self._is_closing.wait(random.uniform(longest / 2, longest))

    def ping(self) -> None:
        """Raise RegistryError if the database does not respond."""
        with self.read() as connection:
            # SQLite answers `SELECT 1` without opening its file, so read a table.
            connection.exec_driver_sql("SELECT name FROM subjects LIMIT 1")

    def close(self) -> None:
        """Close all connections."""
        self._is_closing.set()
        self._engine.dispose()

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        lock = self._write_lock.take(timeout_seconds=self._timeout_seconds) if self._write_lock else nullcontext()
        with lock, self._engine.connect() as connection:
            with connection.begin() as transaction:
                if self.is_sqlite:
                    # Not in a listener of SQLAlchemy's: every statement would pay for looking it up.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                result = work(connection)
                try:
                    transaction.commit()
                except SQLAlchemyError as error:
                    if classify(error) is Failure.DISCONNECTED:
                        # Not retried: the commit may have succeeded.
                        message = "The connection to the database broke during the commit: its outcome is unknown."
                        raise RegistryError(50001, message) from error
                    raise
            return result


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError("database.url is not a URL: use sqlite:///file or postgresql://user@host/name") from error
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
        raise ValueError(f"database.url: cannot create the folder {folder}: {error.strerror}") from error
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
        connection.execute("PRAGMA synchronous = FULL")  # acknowledged writes survive a power loss
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
        pool_use_lifo=True,  # keeps few connections busy, and those have their statements prepared
        pool_recycle=1800,
        isolation_level="READ COMMITTED",
        connect_args={
            "connect_timeout": 5,
            "keepalives_idle": 30,
            "tcp_user_timeout": 30_000,
            "client_encoding": "utf8",  # psycopg returns texts as bytes if the database is SQL_ASCII
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
