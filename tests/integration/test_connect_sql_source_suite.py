"""The standard suite of sources, passed by the SQL source on PostgreSQL, MariaDB and SQLite."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from typing_extensions import override

from connect.testing.source_suite import SourceSuite
from connectors.sql.source import SqlSourceConnector
from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresServer
from tests.support.sql_databases import SqlDatabase, SqliteDatabase, mariadb_database, postgres_database

START = datetime(2024, 1, 1, tzinfo=UTC)


def moment(number: int) -> str:
    """A timestamp as every database reads it."""
    return (START + timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S")


class SqlSourceChecks(SourceSuite):
    """The standard suite, by numbers and moments."""

    connector_class = SqlSourceConnector
    batch_option = "batch.max.rows"
    can_break = True
    database: SqlDatabase
    mode: ClassVar[Mapping[str, str]] = {"mode": "incrementing", "incrementing.column.name": "id"}

    @override
    def config(self) -> Mapping[str, str]:
        return {
            "connection.url": self.database.url,
            "connection.attempts": "1",
            "topic.prefix": "db-",
            "table.whitelist": "items",
            "poll.interval.ms": "5",
            **self.mode,
        }

    def prepare(self, database: SqlDatabase) -> None:
        """Make the table."""
        self.database = database
        database.run("CREATE TABLE items (id INTEGER PRIMARY KEY, name VARCHAR(50), at TIMESTAMP NOT NULL)")

    @override
    def produce(self, first: int, count: int) -> None:
        numbers = range(first, first + count)
        rows = [{"id": number, "name": f"name-{number}", "at": moment(number)} for number in numbers]
        self.database.run_many("INSERT INTO items (id, name, at) VALUES (:id, :name, :at)", rows)

    @override
    def break_other_side(self) -> None:
        self.database.break_down()

    @override
    def mend_other_side(self) -> None:
        self.database.mend()


MOMENTS = {"mode": "timestamp", "timestamp.column.name": "at"}
BOTH = {"mode": "timestamp+incrementing", "timestamp.column.name": "at", "incrementing.column.name": "id"}


class TestPostgresNumbers(SqlSourceChecks):
    @pytest.fixture(autouse=True)
    def other_side(self, postgres: PostgresServer) -> None:
        self.prepare(postgres_database(postgres))


class TestPostgresMoments(TestPostgresNumbers):
    mode: ClassVar[Mapping[str, str]] = MOMENTS


class TestMariadbNumbers(SqlSourceChecks):
    @pytest.fixture(autouse=True)
    def other_side(self, mariadb: MariadbServer) -> None:
        self.prepare(mariadb_database(mariadb))


class TestMariadbBoth(TestMariadbNumbers):
    mode: ClassVar[Mapping[str, str]] = BOTH


class TestSqliteNumbers(SqlSourceChecks):
    @pytest.fixture(autouse=True)
    def other_side(self, tmp_path: Path) -> None:
        self.prepare(SqliteDatabase(tmp_path))


class TestSqliteMoments(TestSqliteNumbers):
    mode: ClassVar[Mapping[str, str]] = MOMENTS
