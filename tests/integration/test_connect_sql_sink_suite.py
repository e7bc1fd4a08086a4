"""The standard suite of sinks, passed by the SQL sink on PostgreSQL, MariaDB and SQLite."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from typing_extensions import override

from connect.api import data
from connect.api.data import Schema, Value
from connect.testing.sink_suite import TOPIC, SinkSuite
from connectors.sql.sink import SqlSinkConnector
from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresServer
from tests.support.sql_databases import SqlDatabase, SqliteDatabase, mariadb_database, postgres_database


class SqlSinkChecks(SinkSuite):
    """The standard suite, by upserts into a table that is created."""

    connector_class = SqlSinkConnector
    is_idempotent = True
    can_break = True
    database: SqlDatabase
    mode: ClassVar[Mapping[str, str]] = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"}

    @override
    def config(self) -> Mapping[str, str]:
        return {
            "connection.url": self.database.url,
            "auto.create": "true",
            "auto.evolve": "true",
            "connection.attempts": "1",
            "retry.backoff.ms": "10",
            **self.mode,
        }

    @override
    def written(self) -> list[Value]:
        with self.database.session() as connection:
            if not connection.dialect.has_table(connection, TOPIC):
                return []
        return self.database.rows(f"SELECT * FROM {TOPIC}")

    @override
    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.struct({"id": data.OPTIONAL_INT64, "name": data.OPTIONAL_STRING}), {"id": None, "name": "x"}

    @override
    def break_other_side(self) -> None:
        self.database.break_down()

    @override
    def mend_other_side(self) -> None:
        self.database.mend()


class TestPostgresSuite(SqlSinkChecks):
    @pytest.fixture(autouse=True)
    def other_side(self, postgres: PostgresServer) -> None:
        self.database = postgres_database(postgres)


class TestMariadbSuite(SqlSinkChecks):
    @pytest.fixture(autouse=True)
    def other_side(self, mariadb: MariadbServer) -> None:
        self.database = mariadb_database(mariadb)


class TestSqliteSuite(SqlSinkChecks):
    @pytest.fixture(autouse=True)
    def other_side(self, tmp_path: Path) -> None:
        self.database = SqliteDatabase(tmp_path)


class TestPostgresInsertsExactlyOnceSuite(SqlSinkChecks):
    """Inserts, which would be there twice without the offsets in the database."""

    is_idempotent = False
    mode: ClassVar[Mapping[str, str]] = {"insert.mode": "insert", "exactly.once": "true"}

    @override
    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.struct({"id": data.INT64, "name": data.OPTIONAL_STRING}), {"id": 2**70, "name": "x"}

    @pytest.fixture(autouse=True)
    def other_side(self, postgres: PostgresServer) -> None:
        self.database = postgres_database(postgres)
