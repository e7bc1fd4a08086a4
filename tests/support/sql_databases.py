"""Databases of three kinds that tests of SQL connectors use alike: statements, rows, and an outage that ends."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, inspect, make_url, text
from sqlalchemy.pool import NullPool
from typing_extensions import override

from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresServer


class SqlDatabase(ABC):
    """A database of its own for one test."""

    url: str

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = _engine(url)

    @abstractmethod
    def break_down(self) -> None:
        """Begin an outage."""

    @abstractmethod
    def mend(self) -> None:
        """End it."""

    def clear(self) -> "SqlDatabase":
        """Without tables and types, as a new one: much cheaper than that."""
        self.mend()
        with self._engine.begin() as connection:
            for name in inspect(connection).get_table_names():
                connection.execute(text(f"DROP TABLE {connection.dialect.identifier_preparer.quote(name)}"))
        return self

    def run(self, statement: str, **parameters: Any) -> None:
        """Run a statement and commit it."""
        with self._engine.begin() as connection:
            connection.execute(text(statement), parameters)

    def run_many(self, statement: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run it for each of these."""
        with self._engine.begin() as connection:
            connection.execute(text(statement), rows)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a query finds."""
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(query)).mappings()]

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A connection whose transaction the test ends itself."""
        with self._engine.connect() as connection:
            yield connection


class PostgresDatabase(SqlDatabase):
    """A database of the session's PostgreSQL; its outage is that nobody may connect."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__(server.create_database().replace("postgresql://", "postgresql+psycopg://"))
        self._name = make_url(self.url).database
        self._admin = _engine(str(make_url(self.url).set(database="postgres").render_as_string(hide_password=False)))

    @override
    def break_down(self) -> None:
        with self._admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false"))
            ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = :name"
            connection.execute(text(ended), {"name": self._name})

    @override
    def mend(self) -> None:
        with self._admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true"))


class MariadbDatabase(SqlDatabase):
    """A database of the session's MariaDB with a user of its own, whose account can be locked."""

    def __init__(self, server: MariadbServer) -> None:
        root = server.create_database()
        self._admin = _engine(root)
        self._user = f"u_{make_url(root).database}"
        with self._admin.begin() as connection:
            connection.execute(text(f"CREATE USER {self._user}@localhost IDENTIFIED BY 'secret-of-tests'"))
            connection.execute(text(f"GRANT ALL ON {make_url(root).database}.* TO {self._user}@localhost"))
        own = make_url(root).set(username=self._user, password="secret-of-tests")
        super().__init__(own.render_as_string(hide_password=False))

    @override
    def break_down(self) -> None:
        with self._admin.begin() as connection:
            connection.execute(text(f"ALTER USER {self._user}@localhost ACCOUNT LOCK"))
            connection.execute(text(f"KILL USER {self._user}@localhost"))

    @override
    def mend(self) -> None:
        with self._admin.begin() as connection:
            connection.execute(text(f"ALTER USER {self._user}@localhost ACCOUNT UNLOCK"))


class SqliteDatabase(SqlDatabase):
    """A file; its outage is that somebody else holds it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "tables.db"
        super().__init__(f"sqlite+pysqlite:///{self._file}?timeout=50")
        self._engine = _engine(f"sqlite+pysqlite:///{self._file}")
        self._holder: sqlite3.Connection | None = None

    @override
    def break_down(self) -> None:
        self._holder = sqlite3.connect(self._file, isolation_level=None)
        self._holder.execute("BEGIN EXCLUSIVE")

    @override
    def mend(self) -> None:
        if self._holder is not None:
            self._holder.rollback()
            self._holder.close()
            self._holder = None


_shared: dict[int, SqlDatabase] = {}


def postgres_database(server: PostgresServer) -> SqlDatabase:
    """A database of the session's PostgreSQL without tables; the same one for tests that leave nothing else there."""
    if id(server) not in _shared:
        _shared[id(server)] = PostgresDatabase(server)
    return _shared[id(server)].clear()


def mariadb_database(server: MariadbServer) -> SqlDatabase:
    """The same of MariaDB."""
    if id(server) not in _shared:
        _shared[id(server)] = MariadbDatabase(server)
    return _shared[id(server)].clear()


def _engine(url: str) -> Engine:
    return create_engine(url, poolclass=NullPool)
