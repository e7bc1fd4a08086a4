"""The walk of one record, from an HTTP request to a row of a Spark table, over real processes.

Each test looks at one stop of it, in the order of the table in ARCHITECTURE.md; a record that is no Avro takes another
turn at the end.
"""

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
import httpx2
import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import read_to_end
from tests.support.clients.model import Received
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_java import needs_java
from tests.support.spark_letters import Letter, letters
from tests.support.spark_tables import parquet_rows
from tests.support.spark_worker import AVRO, TEXT, SparkWorker, sink

pytestmark = pytest.mark.timeout(600)

_TOPIC: Final = "walk-orders"
_DEAD: Final = "walk-orders-dead"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "namespace": "walk",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
_ORDER: Final = {"id": 7, "item": "canoe"}
_GARBLED: Final = b"this is no Avro"
_MAGIC_BYTE: Final = 0
_TIMEOUT_S: Final = 60.0
_PATIENCE_S: Final = 400.0


@dataclass(slots=True)
class Walk:
    """What runs, and what the REST proxy answered."""

    broker: BrokerProcess
    registry: RegistryProcess
    proxy: ProxyProcess
    answer: dict[str, Any] = field(default_factory=dict)
    garbled: dict[str, Any] = field(default_factory=dict)

    def post(self, media: str, body: dict[str, Any]) -> dict[str, Any]:
        """Produce over HTTP."""
        answer = httpx2.post(
            f"{self.proxy.url}/topics/{_TOPIC}",
            content=json.dumps(body),
            headers={"content-type": f"application/vnd.kafka.{media}.v2+json"},
            timeout=_TIMEOUT_S,
        )
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    @property
    def schema_id(self) -> int:
        """The id of the schema, as the proxy tells it."""
        return int(self.answer["value_schema_id"])

    def records(self) -> list[Received]:
        """The records of the topic, as confluent-kafka reads them."""
        return sorted(read_to_end(self.broker.bootstrap, _TOPIC), key=lambda record: record.offset)


@pytest.fixture(scope="module")
def walk(broker: BrokerProcess, registry: RegistryProcess, proxy: ProxyProcess) -> Walk:
    """One order and one record that is none, sent over HTTP."""
    create_topic(broker, _TOPIC)
    started = Walk(broker, registry, proxy)
    started.answer = started.post("avro", {"value_schema": json.dumps(_SCHEMA), "records": [{"value": _ORDER}]})
    started.garbled = started.post("binary", {"records": [{"value": base64.b64encode(_GARBLED).decode()}]})
    return started


@pytest.fixture(scope="module")
def worker(walk: Walk, spark_worker: SparkWorker) -> Iterator[SparkWorker]:
    """A worker whose Spark sink has taken both records."""
    config = sink(walk.registry.url, topics=_TOPIC, table="walked", key_converter=TEXT, value_converter=AVRO)
    config["errors.deadletterqueue.topic.name"] = _DEAD
    spark_worker.create("walk", config)
    try:
        spark_worker.wait_until_drained(walk.broker, "walk", [_TOPIC], timeout_s=_PATIENCE_S)
        yield spark_worker
    finally:
        spark_worker.delete("walk")


def test_the_proxy_answers_for_each_record_with_its_place(walk: Walk) -> None:
    (order,), (garbled,) = walk.answer["offsets"], walk.garbled["offsets"]

    assert (order["partition"], order["offset"], order["error"]) == (0, 0, None)
    assert (garbled["partition"], garbled["offset"], garbled["error"]) == (0, 1, None)


def test_the_registry_has_the_schema_that_came_with_the_first_record(walk: Walk) -> None:
    url = walk.registry.url
    by_id = httpx2.get(f"{url}/schemas/ids/{walk.schema_id}", timeout=_TIMEOUT_S).json()
    latest = httpx2.get(f"{url}/subjects/{_TOPIC}-value/versions/latest", timeout=_TIMEOUT_S).json()

    assert fastavro.parse_schema(json.loads(by_id["schema"])) == fastavro.parse_schema(_SCHEMA)
    assert (latest["id"], latest["version"]) == (walk.schema_id, 1)


def test_the_log_has_the_record_behind_a_magic_byte_and_the_id(walk: Walk) -> None:
    order, garbled = walk.records()
    assert order.value is not None

    assert order.value[0] == _MAGIC_BYTE
    assert int.from_bytes(order.value[1:5], "big") == walk.schema_id
    assert fastavro.schemaless_reader(io.BytesIO(order.value[5:]), _SCHEMA, None) == _ORDER
    assert garbled.value == _GARBLED


def test_the_bytes_are_in_the_segment_as_they_were_sent(walk: Walk) -> None:
    segment = (walk.broker.data / f"{_TOPIC}-0" / "00000000000000000000.log").read_bytes()
    values = [record.value for record in walk.records()]

    assert [value is not None and segment.count(value) for value in values] == [1, 1]


@needs_java
def test_the_order_is_a_row_of_the_spark_table_once(worker: SparkWorker) -> None:
    rows = eventually(lambda: parquet_rows(worker.table("walked")), timeout_s=_PATIENCE_S)

    assert [(row["id"], row["item"]) for row in rows] == [(7, "canoe")]
    assert [(row["_topic"], row["_partition"], row["_offset"]) for row in rows] == [(_TOPIC, 0, 0)]


@needs_java
def test_the_other_record_is_a_dead_letter_whose_headers_tell_why(walk: Walk, worker: SparkWorker) -> None:
    found: list[Letter] = eventually(lambda: letters(walk.broker.bootstrap, _DEAD), timeout_s=_PATIENCE_S)

    (letter,) = found
    assert letter.received.value == _GARBLED
    assert (letter.place.topic, letter.place.partition, letter.place.offset) == (_TOPIC, 0, 1)
    assert letter.told["connector.name"] == "walk"
    assert letter.told["task.id"] == "0"
    assert letter.told["stage"] == "VALUE_CONVERTER"
    assert letter.told["class.name"] == AVRO
    assert letter.told["exception.class.name"] == "org.apache.kafka.connect.errors.DataException"
    assert "Avro" in letter.told["exception.message"]
    assert letter.told["exception.stacktrace"]


@needs_java
def test_the_group_of_the_sink_stands_at_the_end_of_the_topic(worker: SparkWorker) -> None:
    told = eventually(
        lambda: worker.json("GET", "/connectors/walk/offsets")["offsets"],
        lambda offsets: bool(offsets) and offsets[0]["offset"]["kafka_offset"] == 2,
        timeout_s=_PATIENCE_S,
    )

    assert told[0]["partition"] == {"kafka_topic": _TOPIC, "kafka_partition": 0}
