import pytest

from connect.api.errors import ConfigError
from connectors.spark.config import PartitionColumn, SparkSinkConfig
from connectors.spark.naming import TableNames


def test_a_sink_needs_to_be_told_nothing() -> None:
    config = SparkSinkConfig.parse({})
    assert (config.table, config.table_format, config.write_mode) == ("${topic}", "parquet", "append")
    assert config.metadata == ("topic", "partition", "offset", "timestamp")
    assert list(config.problems()) == []


def test_partitions_are_columns_or_periods_of_columns() -> None:
    config = SparkSinkConfig.parse({"partition.by": "country, day(_timestamp)"})
    assert config.partitions == (
        PartitionColumn("country", "country", None),
        PartitionColumn("_timestamp_day", "_timestamp", "day"),
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partition.by", "week(_timestamp)"),
        ("partition.by", "a b"),
        ("topic2table.map", "orders"),
        ("topic2table.map", "orders:Shop.Orders"),
        ("table.format", "orc"),
        ("table", ""),
        ("table", "my table"),
        ("table", "a.b.${topic}"),
        ("table", "${database}"),
        ("metadata.columns", "topic,everything"),
        ("batch.max.records", "0"),
        ("trigger.interval.ms", "-1"),
    ],
)
def test_what_cannot_work_is_refused_with_key_and_value(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        SparkSinkConfig.parse({key: value})


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"write.mode": "upsert", "pk.mode": "record_key"}, "write.mode"),
        ({"write.mode": "upsert", "table.format": "delta"}, "pk.mode"),
        (
            {"write.mode": "upsert", "table.format": "delta", "pk.mode": "record_key", "metadata.columns": "topic"},
            "metadata.columns",
        ),
        ({"pk.mode": "record_value"}, "pk.fields"),
        ({"metadata.columns": "none,topic"}, "metadata.columns"),
        ({"partition.by": "a,a"}, "partition.by"),
        ({"partition.by": "day(_timestamp)", "metadata.columns": "topic,offset"}, "partition.by"),
    ],
)
def test_options_that_do_not_go_together_are_told(options: dict[str, str], key: str) -> None:
    config, _ = SparkSinkConfig.read(options)
    assert [problem.key for problem in config.problems()] == [key]


@pytest.mark.parametrize(
    ("topic", "table"),
    [
        ("orders", "orders"),
        ("Shop.Orders-v2", "shop_orders_v2"),
        ("users", "people.users"),
    ],
)
def test_a_topic_has_a_table(topic: str, table: str) -> None:
    assert TableNames("${topic}", {"users": "people.users"}).of(topic) == table


def test_a_template_may_name_a_database() -> None:
    assert TableNames("Lake.raw_${topic}", {}).of("a.b") == "lake.raw_a_b"
