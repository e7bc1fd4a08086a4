"""What an executor of the Spark sink writes, without Spark: the fast way and the slow one write the same."""

import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.api.engine import TopicChoice
from connect.runtime.failures.error_policy import ToleranceExceeded
from connect.runtime.models import TaskId
from connect.runtime.tasks.steps import steps_of
from connect.settings import ConnectSettings
from connectors.spark.range_writer import RangeWriter, close_pipelines
from connectors.spark.spec import SinkFolders, SinkSpec
from streams.spark.commits.entries import Counted, Entry, WrittenRange, WrittenRecords, WrittenRows
from streams.spark.commits.staged_records import read_records
from streams.spark.decoding import opening
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.fetching import close_idle
from streams.spark.topics.ranges import OffsetRange
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess

ORDER = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": null},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}}]}"""
NOTHING = {"transforms": "n", "transforms.n.type": "InsertHeader", "transforms.n.header": "x"} | {
    "transforms.n.value.literal": "1"
}
"""A transform: with it, records take the slow way."""
AVRO = "io.confluent.connect.avro.AvroConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
DEAD = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """What executors keep open for the next batch is closed."""
    yield
    close_pipelines()
    close_idle()
    opening.close_opened()


def sent(broker: BrokerProcess, topic: str, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    # Records as old as these could be gone before they are read.
    create_topic(broker, topic, configs={"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in records:
        producer.produce(topic, value, key, timestamp=1_700_000_000_000, headers=[("h", b"1")])
    assert producer.flush(60) == 0


def avro(registry: RegistryProcess, topic: str, values: Sequence[dict[str, Any]]) -> list[bytes]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        serializer = AvroSerializer(client, ORDER)
        context = SerializationContext(topic, MessageField.VALUE)
        return [bytes(serializer(value, context) or b"") for value in values]


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": None if number % 3 == 0 else f"order {number}",
        "price": Decimal(number) / 4,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "tags": ["a"] * (number % 3),
        "counts": {"n": number % 100},
        "kind": "AB"[number % 2],
    }


def written(
    broker: BrokerProcess, topic: str, folder: Path, end: int, config: dict[str, str]
) -> tuple[list[Entry], SinkSpec]:
    given = {"name": topic, "connector.class": "SparkSink", "topics": topic, "key.converter": TEXT, **config}
    steps = steps_of(TaskId(topic, 0), ConnectSettings.parse({}), resolved=given, secrets={})
    kafka = {"bootstrap.servers": broker.bootstrap}
    spec = SinkSpec(
        connector=topic,
        consumer=kafka,
        producer=kafka,
        admin=kafka,
        group=f"connect-{topic}",
        topics=TopicChoice(names=(topic,)),
        options=given,
        steps=steps.text(),
    )
    writer = RangeWriter(spec, SinkFolders.of(str(folder), topic), Cluster(broker.bootstrap))
    return writer.write([OffsetRange(topic, 0, 0, end)]), spec


def rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    files = [pq.read_table(entry.file.path) for entry in entries if isinstance(entry, WrittenRows)]
    found = pa.concat_tables(files, promote_options="permissive").to_pylist() if files else []
    return sorted(found, key=lambda row: row["_offset"])


@pytest.mark.parametrize("way", [{}, NOTHING], ids=["fast", "slow"])
def test_avro_records_become_rows_and_bad_ones_letters(
    broker: BrokerProcess, registry: RegistryProcess, name: str, tmp_path: Path, way: dict[str, str]
) -> None:
    values: list[bytes | None] = list(avro(registry, name, [order(number) for number in range(2000)]))
    bad = {7: b"no magic", 500: struct.pack(">bI", 0, 999_999) + b"x", 1500: (values[1500] or b"")[:8], 1999: b""}
    for index, value in bad.items():
        values[index] = value
    values[100] = None
    sent(broker, name, [(b"k%d" % index, value) for index, value in enumerate(values)])
    config = {"value.converter": AVRO, "value.converter.schema.registry.url": registry.url, **DEAD, **way}
    entries, _ = written(broker, name, tmp_path, 2000, config)
    found = rows(entries)
    assert [row["_offset"] for row in found] == [index for index in range(2000) if index not in bad]
    for row in found:
        number = row["_offset"]
        expected = order(number) if number != 100 else dict.fromkeys(order(0))
        assert {key: row[key] for key in expected} == expected | {
            "counts": None if number == 100 else [("n", number % 100)]
        }
        assert row["_topic"] == name
    letters = [letter for e in entries if isinstance(e, WrittenRecords) for letter in read_records(e.path)]
    assert [letter.value for letter in letters] == list(bad.values())
    counted = next(entry.counts for entry in entries if isinstance(entry, Counted))
    assert (counted["sink_record_read"], counted["sink_record_send"]) == (2000, 1996)
    assert counted["total_records_skipped"] == len(bad)
    assert [entry.end for entry in entries if isinstance(entry, WrittenRange)] == [2000]


def test_the_fast_way_and_the_slow_one_write_columns_of_the_same_types(
    broker: BrokerProcess, registry: RegistryProcess, name: str, tmp_path: Path
) -> None:
    sent(broker, name, [(b"k", value) for value in avro(registry, name, [order(number) for number in range(10)])])
    config = {"value.converter": AVRO, "value.converter.schema.registry.url": registry.url}
    config["metadata.columns"] = "topic,partition,offset,timestamp,key,schema_id"
    schemas = []
    for way in ({}, NOTHING):
        entries, _ = written(broker, name, tmp_path, 10, config | way)
        schemas.append([entry.schema for entry in entries if isinstance(entry, WrittenRows)])
    assert schemas[0] == schemas[1]


def test_a_bad_record_ends_a_sink_that_tolerates_none(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    sent(broker, name, [(b"k", b"{"), (b"k", b"{}")])
    config = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
    with pytest.raises(ToleranceExceeded) as raised:
        written(broker, name, tmp_path, 2, config)
    assert raised.value.__cause__ is not None
