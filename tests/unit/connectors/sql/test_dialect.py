from datetime import date
from decimal import Decimal

import pytest

from connect.api import data
from connect.api.data import Schema
from connect.api.errors import DataError
from connectors.sql.dialect import DIALECTS, Dialect, MySql, NewColumn, Postgres, Sqlite, Table

TABLE = Table(name="orders", schema="sales")
NAMED = data.STRING.but


@pytest.mark.parametrize(
    "schema, postgres, mysql, sqlite",
    [
        (data.INT8, "SMALLINT", "TINYINT", "INTEGER"),
        (data.INT16, "SMALLINT", "SMALLINT", "INTEGER"),
        (data.INT32, "INT", "INT", "INTEGER"),
        (data.INT64, "BIGINT", "BIGINT", "INTEGER"),
        (data.FLOAT32, "REAL", "FLOAT", "REAL"),
        (data.FLOAT64, "DOUBLE PRECISION", "DOUBLE", "REAL"),
        (data.BOOLEAN, "BOOLEAN", "TINYINT", "INTEGER"),
        (data.STRING, "TEXT", "TEXT", "TEXT"),
        (data.BYTES, "BYTEA", "VARBINARY(1024)", "BLOB"),
        (data.decimal(3), "DECIMAL", "DECIMAL(65,3)", "NUMERIC"),
        (data.DATE, "DATE", "DATE", "NUMERIC"),
        (data.TIME, "TIME", "TIME(3)", "NUMERIC"),
        (data.TIMESTAMP, "TIMESTAMP", "DATETIME(3)", "NUMERIC"),
        (data.array(data.INT32), "INT[]", "JSON", "TEXT"),
        (data.array(data.struct({"a": data.INT8})), "JSONB", "JSON", "TEXT"),
        (data.mapping(data.STRING, data.INT8), "JSONB", "JSON", "TEXT"),
        (data.struct({"a": data.INT8}), "JSONB", "JSON", "TEXT"),
        (NAMED(name="io.debezium.data.Json"), "JSONB", "JSON", "TEXT"),
        (NAMED(name="io.debezium.data.Uuid"), "UUID", "VARCHAR(36)", "TEXT"),
        (NAMED(name="io.debezium.time.ZonedTimestamp"), "TIMESTAMPTZ", "DATETIME(6)", "NUMERIC"),
        (NAMED(name="somebody.elses.Name"), "TEXT", "TEXT", "TEXT"),
    ],
)
def test_types_of_new_columns(schema: Schema, postgres: str, mysql: str, sqlite: str) -> None:
    found = {family: dialect().column_type(schema) for family, dialect in DIALECTS.items()}
    assert found == {"postgresql": postgres, "mysql": mysql, "sqlite": sqlite}


@pytest.mark.parametrize(
    "dialect, wanted",
    [
        (
            Postgres(),
            (
                'INSERT INTO "sales"."orders" ("id", "n") VALUES (%s, %s) '
                'ON CONFLICT ("id") DO UPDATE SET "n" = excluded."n"'
            ),
        ),
        (
            MySql(),
            "INSERT INTO `sales`.`orders` (`id`, `n`) VALUES (%s, %s) ON DUPLICATE KEY UPDATE `n` = VALUES(`n`)",
        ),
        (
            Sqlite(quotes_always=False),
            "INSERT INTO sales.orders (id, n) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
        ),
    ],
)
def test_upserts(dialect: Dialect, wanted: str) -> None:
    assert dialect.upsert(TABLE, ["id", "n"], keys=["id"]) == wanted


def test_an_upsert_of_keys_alone_changes_nothing() -> None:
    assert Postgres().upsert(TABLE, ["id"], keys=["id"]).endswith('ON CONFLICT ("id") DO NOTHING')
    assert MySql().upsert(TABLE, ["id"], keys=["id"]).endswith("ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)")


def test_updates_and_deletes() -> None:
    dialect = Postgres()
    wanted = 'UPDATE "sales"."orders" SET "n" = %s WHERE "a" = %s AND "b" = %s'
    assert dialect.update(TABLE, ["a", "b", "n"], keys=["a", "b"]) == wanted
    assert dialect.delete(TABLE, ["a", "b"]) == 'DELETE FROM "sales"."orders" WHERE "a" = %s AND "b" = %s'


def test_a_new_table_has_its_key_and_says_what_may_be_null() -> None:
    columns = [
        NewColumn(name="id", schema=data.OPTIONAL_STRING, is_key=True),
        NewColumn(name="n", schema=data.OPTIONAL_INT32),
        NewColumn(name="m", schema=data.INT32),
        NewColumn(name="d", schema=data.STRING.but(default="it's")),
    ]
    assert Postgres().create_table(Table(name="t"), columns) == (
        'CREATE TABLE IF NOT EXISTS "t" ("id" TEXT NOT NULL, "n" INT NULL, "m" INT NOT NULL, '
        "\"d\" TEXT DEFAULT 'it''s' NOT NULL, PRIMARY KEY (\"id\"))"
    )
    mysql = MySql().create_table(Table(name="t"), columns)
    assert "`id` VARCHAR(256) NOT NULL" in mysql
    assert "`d` VARCHAR(256) DEFAULT 'it''s' NOT NULL" in mysql


def test_columns_are_added_as_each_database_can() -> None:
    columns = [NewColumn(name=name, schema=data.OPTIONAL_INT32) for name in "ab"]
    assert Postgres().add_columns(TABLE, columns) == [
        'ALTER TABLE "sales"."orders" ADD COLUMN IF NOT EXISTS "a" INT NULL, ADD COLUMN IF NOT EXISTS "b" INT NULL'
    ]
    assert len(Sqlite().add_columns(TABLE, columns)) == 2


@pytest.mark.parametrize(
    "value, postgres, mysql",
    [
        (True, "TRUE", "1"),
        (Decimal("1.50"), "1.50", "1.50"),
        (b"\x00\xff", "'\\x00ff'", "X'00ff'"),
        (date(2024, 2, 29), "'2024-02-29'", "'2024-02-29'"),
        ("a\\b", "'a\\b'", "'a\\\\b'"),
    ],
)
def test_defaults_in_ddl(value: object, postgres: str, mysql: str) -> None:
    assert (Postgres().literal(value), MySql().literal(value)) == (postgres, mysql)


def test_names_cannot_break_out() -> None:
    assert Postgres().quote('a"; DROP TABLE b; --') == '"a""; DROP TABLE b; --"'
    assert MySql().quote("a`b%") == "`a``b%%`"
    assert Sqlite(quotes_always=False).quote("a b") == '"a b"'


def test_mysql_has_only_so_many_digits() -> None:
    with pytest.raises(DataError, match="39 digits"):
        MySql().column_type(data.decimal(39))
