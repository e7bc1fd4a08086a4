from collections.abc import Mapping

import pytest

from connect.api.errors import ConfigError
from connectors.sql.config import SqlSinkConfig, SqlSourceConfig
from connectors.sql.dialect import Table
from connectors.sql.sink import parse_table

SOURCE = {"connection.url": "jdbc:sqlite:x.db", "mode": "bulk", "topic.prefix": "x"}
SINK = {"connection.url": "jdbc:sqlite:x.db"}
ORDERS = Table(name="orders", schema="sales")


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "sometimes"}, "mode"),
        ({"mode": "incrementing", "query": "SELECT 1"}, "incrementing.column.name"),
        ({"table.whitelist": "a", "table.blacklist": "b"}, "table.whitelist"),
        ({"query": "SELECT 1", "table.whitelist": "a"}, "query"),
        ({"table.include.list": "("}, "table.include.list"),
        ({"topic.prefix": "a b"}, "topic.prefix"),
        ({"exactly.once.support": "required"}, "mode"),
        ({"db.timezone": "Nowhere/Land"}, "db.timezone"),
        ({"connection.url": "jdbc:oracle:thin:@x"}, "connection.url"),
    ],
)
def test_options_of_the_source_that_do_not_go_together(changes: Mapping[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        SqlSourceConfig.parse({**SOURCE, **changes})


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"insert.mode": "upsert"}, "pk.mode"),
        ({"insert.mode": "merge"}, "insert.mode"),
        ({"delete.enabled": "true", "pk.mode": "record_value"}, "delete.enabled"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields"),
    ],
)
def test_options_of_the_sink_that_do_not_go_together(changes: Mapping[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        SqlSinkConfig.parse({**SINK, **changes})


def test_words_of_debezium_are_understood() -> None:
    config = SqlSinkConfig.parse(
        {
            **SINK,
            "connection.username": "ana",
            "primary.key.mode": "record_key",
            "primary.key.fields": "id",
            "schema.evolution": "basic",
            "insert.mode": "UPSERT",
            "collection.name.format": "t_${topic}",
        }
    )
    assert (config.connection_user, config.pk_mode, config.pk_fields) == ("ana", "record_key", ("id",))
    assert (config.creates, config.evolves, config.insert_mode) == (True, True, "upsert")
    assert config.table_name_format == "t_${topic}"


@pytest.mark.parametrize(
    "changes, wanted",
    [
        ({}, True),
        ({"table.whitelist": "orders"}, True),
        ({"table.whitelist": "sales.orders"}, True),
        ({"table.whitelist": '"sales"."orders"'}, True),
        ({"table.whitelist": "shop.sales.orders"}, True),
        ({"table.whitelist": "ord"}, False),
        ({"table.include.list": "sales\\..*"}, True),
        ({"table.include.list": ".*s"}, True),
        ({"table.include.list": "other\\..*"}, False),
        ({"table.blacklist": "orders"}, False),
        ({"table.exclude.list": ".*\\.ord.*"}, False),
        ({"schema.pattern": "sal%"}, True),
        ({"schema.pattern": "public"}, False),
    ],
)
def test_which_tables_are_read(changes: Mapping[str, str], wanted: bool) -> None:
    assert SqlSourceConfig.parse({**SOURCE, **changes}).wants(ORDERS) is wanted


def test_columns_may_be_named_for_each_table() -> None:
    config = SqlSourceConfig.parse(
        {
            **SOURCE,
            "mode": "timestamp+incrementing",
            "timestamp.columns.mapping": "sales\\..*:[changed|made],.*:[at]",
            "incrementing.column.mapping": ".*orders:number",
        }
    )
    assert config.timestamp_columns_of(ORDERS) == ("changed", "made")
    assert config.timestamp_columns_of(Table(name="other")) == ("at",)
    assert config.incrementing_column_of(ORDERS) == "number"


@pytest.mark.parametrize(
    "text, family, wanted",
    [
        ("orders", "postgresql", Table(name="orders")),
        ("sales.orders", "postgresql", ORDERS),
        ("shop.sales.orders", "postgresql", ORDERS),
        ('"sales.orders"', "postgresql", Table(name="sales.orders")),
        ('sales."or""ders"', "postgresql", Table(name='or"ders', schema="sales")),
        ("`a.b`", "mysql", Table(name="a.b")),
        ("a.b", "sqlite", Table(name="a.b")),
    ],
)
def test_names_of_tables(text: str, family: str, wanted: Table) -> None:
    assert parse_table(text, family=family) == wanted
