"""Rows of a table as records, and those as rows of another table: nothing changes on the way."""

from typing import Any

import pytest

from connect.api.record import SourceRecord
from connect.testing.contexts import FakeSinkContext, FakeSourceContext
from connect.testing.samples import mismatches, sink_record
from connectors.sql.dialect import Table
from connectors.sql.sink import SqlSinkConnector
from connectors.sql.source import SqlSourceConnector, format_tables
from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresServer
from tests.support.sql_databases import MariadbDatabase, PostgresDatabase, SqlDatabase

UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
POSTGRES = {
    "x xml": "'<a/>'",
    "m money": "'1.50'",
    "v tsvector": "'a b'",
    "b bit(3)": "B'101'",
    "mac macaddr": "'08:00:2b:01:02:03'",
    "p point": "'(1,2)'",
    "c pair": "'(1,x)'",
    "d positive": "5",
    "tz timetz": "'10:00+02'",
    "o oid": "7",
    "ch char(5)": "'abc'",
    "ns numeric(5,2)[]": "ARRAY[1.5, NULL]",
    "ts timestamptz[]": "ARRAY['2024-01-01 00:00+00'\\:\\:timestamptz]",
    "us uuid[]": f"ARRAY['{UUID}'\\:\\:uuid]",
    "js jsonb[]": "ARRAY['{\"a\"\\: 1}'\\:\\:jsonb]",
    "j json": "'[1, null]'",
    "r int4range": "'[1,3)'",
    "i interval": "'1 day 2 hours'",
    "f float8": "'NaN'",
}
MARIADB = {
    "j JSON": "'{}'",
    "s SET('a','b')": "'a,b'",
    "b BIT(9)": "b'100000001'",
    "m MEDIUMINT UNSIGNED": "16777215",
    "u BIGINT": "-9223372036854775808",
    "g POINT": "ST_GeomFromText('POINT(1 2)')",
    "dt DATETIME(6)": "'2024-01-01 00:00:00.000001'",
    "tm TIME(6)": "'23:59:59.999999'",
    "bn BINARY(3)": "x'0100ff'",
    "uu UUID": f"'{UUID}'",
    "ip INET6": "'::1'",
    "t LONGTEXT": "'naïve 日本 😀'",
}


def read(database: SqlDatabase, table: Table, context: FakeSourceContext | None = None) -> list[SourceRecord]:
    given = {"connection.url": database.url, "topic.prefix": "x", "mode": "bulk", "tables": format_tables([table])}
    task = SqlSourceConnector.task_class(SqlSourceConnector.config_class.parse(given), context or FakeSourceContext())
    task.start()
    try:
        return list(task.poll())
    finally:
        task.stop()


def write(database: SqlDatabase, record: SourceRecord, **schema: Any) -> None:
    given = {"connection.url": database.url, "table.name.format": "copied"}
    task = SqlSinkConnector.task_class(SqlSinkConnector.config_class.parse(given), FakeSinkContext([("x", 0)]))
    task.start()
    try:
        task.put([sink_record("x", 0, value=record.value, **schema)])
    finally:
        task.stop()


def check(database: SqlDatabase, columns: dict[str, str], table: Table) -> None:
    database.run(f"CREATE TABLE things ({', '.join(columns)})")
    database.run("CREATE TABLE copied AS SELECT * FROM things")
    database.run(f"INSERT INTO things VALUES ({', '.join(columns.values())})")
    record = read(database, table)[0]
    assert list(mismatches(record.value_schema, record.value)) == []
    write(database, record, value_schema=record.value_schema)
    write(database, record)
    assert repr(database.rows("SELECT * FROM copied")) == repr(database.rows("SELECT * FROM things") * 2)


def test_rows_of_postgresql(postgres: PostgresServer) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TYPE pair AS (a int, b text)")
    database.run("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    check(database, POSTGRES, Table(name="things", schema="public"))


def test_rows_of_mariadb(mariadb: MariadbServer) -> None:
    check(MariadbDatabase(mariadb), MARIADB, Table(name="things"))


@pytest.mark.parametrize(
    "type_, cell", [("date", "infinity"), ("timestamp", "-infinity"), ("timestamptz", "20000-01-01")]
)
def test_a_moment_that_python_does_not_know_is_reported_and_the_others_are_read(
    postgres: PostgresServer, type_: str, cell: str
) -> None:
    database = PostgresDatabase(postgres)
    database.run(f"CREATE TABLE things (id int, at {type_})")
    database.run(f"INSERT INTO things VALUES (1, '{cell}'), (2, '2024-01-01')")
    context = FakeSourceContext()
    assert [record.value["id"] for record in read(database, Table(name="things", schema="public"), context)] == [2]
    assert [cell in str(report.error) for report in context.reported] == [True]
