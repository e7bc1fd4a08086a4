"""Declared streams and tables as values."""

import pytest

from streams.model.sources import Column, Format, HeaderColumn, TimestampColumn, WindowInfo
from streams.model.types import INTEGER, Field, Struct
from streams.sql.analysis.facts import Facts, Inferred
from streams.sql.language.tree.statements import AlterSource, CreateSource
from streams.sql.planning.sources import Inference, alter, declare, needs_inference
from tests.support.sql_catalog import KnownSources, read_one


@pytest.fixture
def catalog() -> KnownSources:
    found = KnownSources()
    found.partitions["t"] = 3
    return found


def test_columns_formats_and_topic(catalog: KnownSources) -> None:
    catalog.named_types["POINT"] = Struct((Field("X", INTEGER),))
    declared = catalog.declare(
        """CREATE STREAM S (V POINT, K STRING KEY, A STRING, ALLH ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS)
        WITH (KAFKA_TOPIC='t', VALUE_FORMAT='json', TIMESTAMP='a', TIMESTAMP_FORMAT='yyyy')"""
    )
    source = declared.source
    assert source.key == (Column("K", "STRING"),)
    assert source.value == (Column("V", "STRUCT<`X` INTEGER>"), Column("A", "STRING"))
    assert source.headers == (HeaderColumn("ALLH"),)
    assert (source.key_format, source.value_format) == (Format(name="KAFKA"), Format(name="JSON"))
    assert source.timestamp == TimestampColumn(column="A", pattern="yyyy")
    assert (source.partitions, declared.topic.partitions, declared.replaces) == (3, None, False)
    assert "KEY_FORMAT = 'KAFKA'" in source.statement


def test_new_topic(catalog: KnownSources) -> None:
    declared = catalog.declare(
        """CREATE TABLE T (K INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='new', PARTITIONS=4, FORMAT='JSON',
        WINDOW_TYPE='tumbling', WINDOW_SIZE='30 SECONDS', WRAP_SINGLE_VALUE=FALSE)"""
    )
    assert (declared.topic.name, declared.topic.partitions, declared.topic.must_match) == ("new", 4, True)
    assert declared.topic.configs == {"cleanup.policy": "compact,delete"}
    assert declared.source.window == WindowInfo(kind="TUMBLING", size_ms=30_000)
    assert declared.source.value_format.wraps_single is False
    assert not declared.source.is_materialized


def test_source_table_is_materialized(catalog: KnownSources) -> None:
    source = catalog.declare(
        "CREATE SOURCE TABLE T (K INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON')"
    ).source
    assert source.is_materialized
    assert source.is_read_only


def test_columns_of_the_registry(catalog: KnownSources) -> None:
    statement = read_one(
        "CREATE STREAM S (K STRING KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=7)"
    )
    assert isinstance(statement, CreateSource)
    wanted = needs_inference(statement, catalog.options())
    assert wanted == Inference(topic="t", value=Format(name="AVRO", schema_id=7))
    inferred = Inferred(value=(Column("a", "INTEGER"), Column("B", "STRING")), value_schema_id=7)
    source = declare(statement, catalog, Facts({"t": 3}, inferred), catalog.options()).source
    assert source.value == inferred.value
    assert "`a` INTEGER" in source.statement


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("CREATE STREAM S WITH (KAFKA_TOPIC='t', FORMAT='AVRO')", (True, True)),
        ("CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='t', FORMAT='AVRO')", (True, False)),
        ("CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='t', KEY_FORMAT='NONE', VALUE_FORMAT='AVRO')", None),
        ("CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='t', FORMAT='PROTOBUF')", None),
    ],
)
def test_what_is_inferred(catalog: KnownSources, text: str, halves: tuple[bool, bool] | None) -> None:
    statement = read_one(text)
    assert isinstance(statement, CreateSource)
    found = needs_inference(statement, catalog.options())
    assert (None if found is None else (found.key is not None, found.value is not None)) == halves


def test_server_defaults(catalog: KnownSources) -> None:
    catalog.properties["ksql.persistence.default.format.value"] = "JSON"
    catalog.properties["ksql.persistence.default.format.key"] = "json"
    catalog.properties["ksql.persistence.wrap.single.values"] = "false"
    source = catalog.declare("CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='t')").source
    assert (source.key_format.name, source.value_format.name, source.value_format.wraps_single) == (
        "JSON",
        "JSON",
        False,
    )


def test_replaced_by_more_columns(catalog: KnownSources) -> None:
    catalog.add("CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON')")
    declared = catalog.declare(
        "CREATE OR REPLACE STREAM S (K INT KEY, V INT, W INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON')"
    )
    assert declared.replaces


def test_alter(catalog: KnownSources) -> None:
    catalog.add("CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON')")
    statement = read_one("ALTER STREAM S ADD COLUMN W STRING, ADD COLUMN X INT")
    assert isinstance(statement, AlterSource)
    assert [column.name for column in alter(statement, catalog).value] == ["V", "W", "X"]
