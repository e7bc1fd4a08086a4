"""Topics of three formats into Spark tables: HTTP and Kafka clients on the one side, readers of tables on the other.

All records are sent once for the file, version after version of their schemas, while the sinks run: the first sink is
paused for version 2 and restarted during version 3. Each test then looks at one side of what came of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_java import needs_java
from tests.support.spark_letters import letter_differences, letters, raw_records
from tests.support.spark_notebook import ask_spark
from tests.support.spark_orders import VERSIONS, Format
from tests.support.spark_records import Making, Oracle, OrderRecord, Place, Spoiling, made
from tests.support.spark_senders import ConfluentSender, RestSender
from tests.support.spark_tables import delta_rows, differences, parquet_rows, place_of
from tests.support.spark_worker import AVRO, JSON_SCHEMA, PROTOBUF, TEXT, SparkWorker, committed, end_offsets, sink

pytestmark = [needs_java, pytest.mark.timeout(1200)]

_EACH: Final = 400
_SPOILED: Final[tuple[Spoiling, ...]] = ("no magic byte", "truncated", "unknown schema id")
_TOPICS: Final[dict[str, tuple[Format, tuple[Spoiling, ...]]]] = {
    "e2e-orders": ("avro", (*_SPOILED, "no number")),
    "e2e-parcels": ("protobuf", _SPOILED),
    "e2e-json.a": ("json", (*_SPOILED, "wrong type")),
    "e2e-json.b": ("json", ("wrong type",)),
}
_READ_BY: Final = {
    "orders": ["e2e-orders"],
    "latest": ["e2e-orders"],
    "parcels": ["e2e-parcels"],
    "documents": ["e2e-json.a", "e2e-json.b"],
}


@dataclass(slots=True)
class Pipeline:
    """What runs, what was sent, and what was seen meanwhile."""

    broker: BrokerProcess
    proxy: ProxyProcess
    registry: RegistryProcess
    worker: SparkWorker
    oracle: Oracle = field(default_factory=Oracle)
    paused: dict[str, Any] = field(default_factory=dict)
    seen_while_paused: list[Place] = field(default_factory=list)
    sent_while_paused: list[Place] = field(default_factory=list)

    def create(self) -> None:
        """Make topics and connectors."""
        for topic in _TOPICS:
            create_topic(self.broker, topic, partitions=3)
        for name, config in _configs(self.registry.url).items():
            config["errors.deadletterqueue.topic.name"] = f"e2e-{name}-dead"
            self.worker.create(name, config)

    def send(self, version: int) -> None:
        """Send records of a version to every topic, over every way."""
        with (
            RestSender(self.proxy.url) as rest,
            ConfluentSender(self.broker.bootstrap, self.registry.url) as sender,
        ):
            for topic, (format_, spoilings) in _TOPICS.items():
                making = Making(format=format_, version=version, spoilings=spoilings)
                records = list(made(making, seed=7, first=version * 10_000, count=_EACH))
                over_v2 = [record for record in records if record.number % 3 == 1 and record.spoiled is None]
                over_v3 = [record for record in records if record.number % 3 == 2 and record.spoiled is None]
                others = [record for record in records if record.number % 3 == 0 or record.spoiled is not None]
                self.oracle.learn(sender.send(topic, others))
                self.oracle.learn(rest.send_v2(topic, _with_keys_of_v2(over_v2)))
                self.oracle.learn(rest.send_v3(topic, over_v3))

    def drain(self, *names: str) -> None:
        """Wait until sinks have no lag."""
        for name in names:
            self.worker.wait_until_drained(self.broker, name, _READ_BY[name])

    def run(self) -> None:
        """All versions, with a pause and a restart."""
        for name in _READ_BY:
            self.worker.wait_until_running(name)
        self.send(1)
        self.drain(*_READ_BY)
        self.worker.json("PUT", "/connectors/orders/pause")
        self.paused = self.worker.wait_for("orders", "PAUSED")
        before = set(self.oracle.records)
        self.send(2)
        self.sent_while_paused = [place for place in self.oracle.good("e2e-orders") if place not in before]
        self.drain("latest", "parcels", "documents")
        self.seen_while_paused = [place_of(row) for row in parquet_rows(self.worker.table("orders"))]
        self.worker.json("PUT", "/connectors/orders/resume")
        self.worker.wait_until_running("orders")
        self.send(3)
        self.worker.json("POST", "/connectors/orders/restart?includeTasks=true")
        self.worker.wait_until_running("orders")
        self.drain(*_READ_BY)


def _with_keys_of_v2(records: Sequence[OrderRecord]) -> list[OrderRecord]:
    """API v2 writes keys in the format of the values: those that are text are left out."""
    return [replace(record, key=None) if isinstance(record.key, str) else record for record in records]


def _configs(registry: str) -> dict[str, dict[str, Any]]:
    transforms = {
        "transforms": "origin,mask,number",
        "transforms.origin.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.origin.static.field": "origin",
        "transforms.origin.static.value": "shop",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "price",
        "transforms.mask.predicate": "deleted",
        "transforms.mask.negate": "true",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "name:int64",
        "transforms.number.predicate": "orders",
        "predicates": "deleted,orders",
        "predicates.deleted.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        "predicates.orders.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.orders.pattern": ".*orders",
    }
    orders = sink(registry, key_converter=AVRO, value_converter=AVRO, topics="e2e-orders", table="orders")
    everything = "topic,partition,offset,timestamp,key,headers,schema_id"
    raw = {"header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
    return {
        "orders": {**orders, "metadata.columns": everything, **raw, **transforms},
        "latest": {
            **orders,
            "table": "latest",
            "table.format": "delta",
            "write.mode": "upsert",
            "pk.mode": "record_key",
        },
        "parcels": sink(
            registry,
            key_converter=TEXT,
            value_converter=PROTOBUF,
            topics="e2e-parcels",
            table="parcels",
            table_format="delta",
            partition_by="day(_timestamp)",
            metadata_columns="topic,partition,offset,timestamp,key,headers",
        ),
        "documents": {
            **sink(registry, key_converter=TEXT, value_converter=JSON_SCHEMA, partition_by="paid"),
            "topics.regex": r"e2e-json\..*",
            "behavior.on.null.values": "ignore",
        },
    }


@pytest.fixture(scope="module")
def pipeline(
    broker: BrokerProcess, registry: RegistryProcess, proxy: ProxyProcess, spark_worker: SparkWorker
) -> Iterator[Pipeline]:
    """Everything sent and written."""
    running = Pipeline(broker, proxy, registry, spark_worker)
    try:
        running.create()
        running.run()
        yield running
    finally:
        for name in _READ_BY:
            spark_worker.ask("DELETE", f"/connectors/{name}")  # it may not be there after a failure


def _raw_headers(pipeline: Pipeline, topic: str) -> dict[Place, list[dict[str, Any]]]:
    """As they are in the topic: API v2 sends none."""
    raw = raw_records(pipeline.broker.bootstrap, topic)
    return {place: [{"key": name, "value": data} for name, data in one.headers] for place, one in raw.items()}


def test_avro_is_in_its_table_record_by_record_with_transforms_keys_and_headers(pipeline: Pipeline) -> None:
    headers = _raw_headers(pipeline, "e2e-orders")
    wanted = {
        place: {
            **record.row,
            "price": None if record.fields is None else 0.0,
            "name": None if record.fields is None else int(record.fields["name"]),
            "origin": None if record.fields is None else "shop",
            "_key": record.key,
            "_headers": headers[place],
        }
        for place, record in pipeline.oracle.good("e2e-orders").items()
    }

    assert differences(parquet_rows(pipeline.worker.table("orders")), wanted) == []


def test_the_id_of_the_schema_tells_its_version(pipeline: Pipeline) -> None:
    versions: dict[int, set[int]] = {}
    for row in parquet_rows(pipeline.worker.table("orders")):
        record = pipeline.oracle.records[place_of(row)]
        if record.fields is not None:
            versions.setdefault(record.version, set()).add(row["_schema_id"])

    assert sorted(versions) == list(VERSIONS)
    assert len({one for ids in versions.values() for one in ids}) == len(VERSIONS) == sum(map(len, versions.values()))


def test_protobuf_is_in_its_delta_table_record_by_record(pipeline: Pipeline) -> None:
    headers = _raw_headers(pipeline, "e2e-parcels")
    wanted = {
        place: {**record.row, "_key": record.key, "_headers": headers[place]}
        for place, record in pipeline.oracle.good("e2e-parcels").items()
    }

    assert differences(delta_rows(pipeline.worker.table("parcels")), wanted) == []


@pytest.mark.parametrize("topic", ["e2e-json.a", "e2e-json.b"])
def test_json_of_each_topic_is_in_its_own_table_record_by_record(pipeline: Pipeline, topic: str) -> None:
    table = pipeline.worker.table(topic.replace("-", "_").replace(".", "_"))
    good = pipeline.oracle.good(topic)
    wanted = {place: record.row for place, record in good.items() if record.fields is not None}

    assert differences(parquet_rows(table, partitions=pa.schema([("paid", pa.bool_())])), wanted) == []


def test_an_upserted_table_has_the_last_value_of_each_key_and_no_deleted_ones(pipeline: Pipeline) -> None:
    latest = pipeline.oracle.latest("e2e-orders", ways=_SPOILED)
    wanted = {place: {**record.row, **_struct(record.key)} for place, record in latest.items()}

    assert differences(delta_rows(pipeline.worker.table("latest")), wanted) == []


def _struct(key: object) -> dict[str, Any]:
    assert isinstance(key, dict)
    return key


@pytest.mark.parametrize(
    ("connector", "ways"),
    [
        ("orders", (*_SPOILED, "no number")),
        ("latest", _SPOILED),
        ("parcels", _SPOILED),
        ("documents", (*_SPOILED, "wrong type")),
    ],
)
def test_each_bad_record_is_one_dead_letter_that_tells_why(
    pipeline: Pipeline, connector: str, ways: tuple[Spoiling, ...]
) -> None:
    topics = _READ_BY[connector]
    bad = {place: one for topic in topics for place, one in pipeline.oracle.bad(topic, ways=ways).items()}
    raw = {place: one for topic in topics for place, one in raw_records(pipeline.broker.bootstrap, topic).items()}
    found = letters(pipeline.broker.bootstrap, f"e2e-{connector}-dead")

    assert {record.spoiled for record in bad.values()} == set(ways)
    assert letter_differences(found, bad, connector=connector, raw=raw) == []


def test_a_paused_sink_writes_nothing_while_the_others_go_on(pipeline: Pipeline) -> None:
    assert pipeline.paused["connector"]["state"] == "PAUSED"
    assert len(pipeline.sent_while_paused) > _EACH / 2
    assert not set(pipeline.seen_while_paused) & set(pipeline.sent_while_paused)
    assert pipeline.seen_while_paused


@pytest.mark.parametrize("connector", _READ_BY)
def test_offsets_over_rest_are_the_ends_of_the_topics(pipeline: Pipeline, connector: str) -> None:
    ends = {place: offset for place, offset in end_offsets(pipeline.broker, _READ_BY[connector]).items() if offset}
    told = eventually(
        lambda: {
            (one["partition"]["kafka_topic"], one["partition"]["kafka_partition"]): one["offset"]["kafka_offset"]
            for one in pipeline.worker.json("GET", f"/connectors/{connector}/offsets")["offsets"]
        },
        lambda found: found == ends,
    )

    assert told == committed(pipeline.broker, f"connect-{connector}", ends)
    assert sorted(pipeline.worker.json("GET", f"/connectors/{connector}/topics")[connector]["topics"]) == sorted(
        _READ_BY[connector]
    )


def test_a_notebook_sees_the_tables_in_the_catalog_with_widened_types(pipeline: Pipeline) -> None:
    (tables, described, sums) = ask_spark(
        *pipeline.worker.notebook,
        "SHOW TABLES",
        "DESCRIBE orders",
        "SELECT count(*) AS rows, count(DISTINCT _partition, _offset) AS places, max(count) AS most FROM orders",
    )
    good = pipeline.oracle.good("e2e-orders")
    most = max(record.fields["count"] for record in good.values() if record.fields is not None)

    assert {"orders", "e2e_json_a", "e2e_json_b"} <= {row["tableName"] for row in tables}
    assert {row["col_name"]: row["data_type"] for row in described}["count"] == "bigint"
    assert sums == [{"rows": len(good), "places": len(good), "most": most}]


def test_nothing_is_left_in_a_state_that_somebody_must_look_at(pipeline: Pipeline) -> None:
    states = {name: pipeline.worker.status(name) for name in _READ_BY}

    assert {task["state"] for status in states.values() for task in status["tasks"]} == {"RUNNING"}
    assert {status["connector"]["state"] for status in states.values()} == {"RUNNING"}
