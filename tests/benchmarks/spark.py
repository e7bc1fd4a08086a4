"""Spark: rows per second and processor time from the broker into tables, beside the same sink fed from memory."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import confluent_kafka
import psutil

from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.serdes.serializer import Serializer
from tests.benchmarks.measure import AS_DELIVERED, MB, Row, Sizes, family_cpu_seconds, percentile
from tests.benchmarks.spark_ceiling import ceilings
from tests.benchmarks.spark_latency import Sender, watched
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_worker import SparkWorker

_AVRO: Final = "io.confluent.connect.avro.AvroConverter"
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_TRANSFORM: Final = {
    "transforms": "a",
    "transforms.a.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.a.static.field": "shop",
    "transforms.a.static.value": "river",
}
_PARTITIONS: Final = 4
_PATIENCE_SECONDS: Final = 600.0
_LATENCY_RATE: Final = 1000
_KEYS: Final = 100_000
_SCHEMA: Final = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "page", "type": "string"},
        {"name": "milliseconds", "type": "int"},
        {"name": "score", "type": "double"},
        {"name": "is_new", "type": "boolean"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "referrer", "type": ["null", "string"], "default": None},
    ],
}


def spark(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """One sink after the other on one engine, each with a topic that is full when it begins."""
    settings = {"spark.master": "local[2]", "spark.driver.memory": "1g"}
    with (
        BrokerProcess(directory / "spark-broker", settings=AS_DELIVERED) as broker,
        RegistryProcess(directory / "spark-registry") as registry,
        SparkWorker(directory / "spark-worker", bootstrap=broker.bootstrap, settings=settings) as worker,
    ):
        bench = _Bench(broker, registry, worker, sizes.spark_rows)
        bench.fill()
        yield bench.starting()
        limits = {}
        for table_format, rate, row in ceilings(directory / "ceiling", sizes.spark_rows, bootstrap=broker.bootstrap):
            limits[table_format] = rate
            yield row
        for what, topic, config, aim in bench.cases():
            yield bench.carried(what, topic, config, aim, limits[config.get("table.format", "parquet")])
        yield bench.latency(sizes.spark_latency_seconds)


class _Bench:
    """Services, and how full topics become tables."""

    def __init__(self, broker: BrokerProcess, registry: RegistryProcess, worker: SparkWorker, rows: int) -> None:
        self._broker = broker
        self._registry = registry
        self._worker = worker
        self._rows = rows
        quiet = {"log_level": "2"}  # A client for each look at a group's offsets says that it ends.
        self._admin = Admin(ClientSettings(bootstrap_servers=broker.bootstrap, properties=quiet))
        self._sinks = 0

    def fill(self) -> None:
        """Topics of the same clicks in three formats; each record has one of many keys."""
        for topic in ("avro", "json", "raw", "latency", "ceiling"):
            self._admin.create_topic(topic, partitions=_PARTITIONS)
        generator = random.Random(1)
        clicks = [_click(generator, number) for number in range(20_000)]
        with RegistryClient(RegistryClientSettings.parse({"schema.registry.url": self._registry.url})) as client:
            serializer = Serializer(client, SchemaDefinition(json.dumps(_SCHEMA)))
            avro = [serializer.serialize("avro", click) for click in clicks]
        documents = [json.dumps(click).encode() for click in clicks]
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._broker.bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
        )
        for topic, values in (("avro", avro), ("json", documents), ("raw", documents)):
            for number in range(self._rows):
                producer.produce(topic, values[number % len(values)], b"%d" % (number * 7919 % _KEYS))
                if number % 1000 == 0:
                    producer.poll(0)
                    while len(producer) > 900_000:
                        producer.poll(0.1)
        assert producer.flush(120) == 0

    def starting(self) -> Row:
        """The engine, from nothing to a sink whose first row can be read."""
        began = time.monotonic()
        name = self._create("json", {"value.converter": _BYTES, "batch.max.records": "1000"})
        self._wait_for(name, 1)
        seconds = time.monotonic() - began
        engine = self._worker.engine()
        assert engine is not None
        memory = 0
        for process in [engine, *engine.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):  # some of Spark's Python workers end meanwhile
                memory += process.memory_info().rss
        self._worker.delete(name)
        return Row(
            what="Spark engine: first row of the first sink",
            result=f"{seconds:.1f} s, {memory / MB:,.0f} MB",
            how="from POST /connectors to the first committed batch; memory of Java and all Python processes, shared "
            "pages counted in each",
        )

    def cases(self) -> Iterator[tuple[str, str, dict[str, str], str]]:
        """What is measured."""
        avro = {"value.converter": _AVRO, "value.converter.schema.registry.url": self._registry.url}
        plain = {"value.converter": _JSON, "value.converter.schemas.enable": "false"}
        raw = {"value.converter": _BYTES}
        delta = {"table.format": "delta"}
        upsert = delta | {"write.mode": "upsert", "pk.mode": "record_key"}
        yield "Avro → parquet", "avro", avro, "> 200,000/s"
        yield "JSON → parquet", "json", plain, ""
        yield "raw bytes → parquet", "raw", raw, ""
        yield "Avro → parquet, one transform", "avro", avro | _TRANSFORM, ""
        yield "Avro → delta, append", "avro", avro | delta, ""
        yield "JSON → delta, append", "json", plain | delta, ""
        yield "raw bytes → delta, append", "raw", raw | delta, ""
        yield "Avro → delta, upsert", "avro", avro | upsert, ""
        yield "JSON → delta, upsert", "json", plain | upsert, ""

    def carried(self, what: str, topic: str, config: Mapping[str, str], aim: str, ceiling: float) -> Row:
        """Rows per second between the first and the last commit of a full topic, and what they cost."""
        batch = max(1000, self._rows // 10)
        name = self._create(topic, {**config, "batch.max.records": str(batch), "trigger.interval.ms": "0"})
        first, before = self._wait_for(name, 1), self._committed(name)
        spent = self._cpu_seconds()
        last = self._wait_for(name, self._rows)
        cost = self._cpu_seconds() - spent
        self._worker.delete(name)
        rows = max(1, self._rows - before)
        rate = rows / max(last - first, 1e-9)
        return Row(
            what=what,
            result=f"{rate:,.0f} rows/s, {rate / ceiling:.0%} of the ceiling",
            aim=aim,
            how=f"{rows:,} rows in batches of {batch:,}, {_PARTITIONS} partitions, {cost / rows * 1e6:.2f} CPU-s of "
            "Java and all Python processes per million rows",
        )

    def latency(self, seconds: float) -> Row:
        """From a record's sending to its row in a file of the table."""
        config = {"value.converter": _JSON, "value.converter.schemas.enable": "false", "trigger.interval.ms": "100"}
        name = self._create("latency", config)
        self._worker.wait_until_running(name)
        sender = Sender(self._broker.bootstrap, "latency", rate=_LATENCY_RATE)
        sender.start()
        waits = watched(self._worker.table(table_of(name)), seconds)
        sender.stop()
        self._worker.delete(name)
        return Row(
            what=f"latency at {_LATENCY_RATE:,} rows/s",
            result=f"median {percentile(waits, 0.5):.2f} s, p99 {percentile(waits, 0.99):.2f} s",
            aim="< 1 s",
            how=f"{len(waits):,} rows, trigger.interval.ms=100, JSON → parquet: from produce() to a file of the table",
        )

    def _create(self, topic: str, config: Mapping[str, str]) -> str:
        self._sinks += 1
        name = f"measured-{self._sinks}"
        given = {"connector.class": "SparkSink", "topics": topic, "table": table_of(name), "key.converter": _TEXT}
        self._worker.create(name, {**given, **config})
        return name

    def _committed(self, name: str) -> int:
        return sum(self._admin.group_offsets(f"connect-{name}").values())

    def _wait_for(self, name: str, count: int) -> float:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._committed(name) < count:
            assert time.monotonic() < deadline, self._worker.trouble(name)
            time.sleep(0.02)
        return time.monotonic()

    def _cpu_seconds(self) -> float:
        engine = self._worker.engine()
        assert engine is not None
        return family_cpu_seconds(engine)


def table_of(name: str) -> str:
    """The table of a sink."""
    return name.replace("-", "_")


def _click(generator: random.Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "user": f"user-{generator.randrange(100_000)}",
        "page": f"/pages/{generator.randrange(1000)}",
        "milliseconds": generator.randrange(100_000),
        "score": generator.random(),
        "is_new": generator.random() < 0.1,
        "at": 1_700_000_000_000 + generator.randrange(10**9),
        "referrer": None if generator.random() < 0.5 else "search",
    }
