"""Connect: records per second and processor time of one task of each kind, and the REST API with many connectors."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import confluent_kafka
import sqlalchemy

from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.serdes.serializer import Serializer
from tests.benchmarks.http_load import request, send_all
from tests.benchmarks.measure import AS_DELIVERED, MB, Row, Sizes, percentile
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.memory import resident_bytes
from tests.support.postgres import PostgresServer, running_server
from tests.support.registry import RegistryProcess

_FIELDS = ("customer", "item", "street", "city", "country", "comment")
_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_AVRO = "io.confluent.connect.avro.AvroConverter"
_TRANSFORMS = "org.apache.kafka.connect.transforms"
_SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        *({"name": name, "type": "string"} for name in _FIELDS),
        {"name": "amount", "type": "double"},
        {"name": "at", "type": "long"},
    ],
}
_FIVE = {
    "transforms": "a,b,c,d,e",
    "transforms.a.type": f"{_TRANSFORMS}.ReplaceField$Value",
    "transforms.a.exclude": "comment",
    "transforms.a.renames": "item:article",
    "transforms.b.type": f"{_TRANSFORMS}.InsertField$Value",
    "transforms.b.topic.field": "source",
    "transforms.b.static.field": "shop",
    "transforms.b.static.value": "river",
    "transforms.c.type": f"{_TRANSFORMS}.Cast$Value",
    "transforms.c.spec": "amount:string",
    "transforms.d.type": f"{_TRANSFORMS}.MaskField$Value",
    "transforms.d.fields": "street",
    "transforms.e.type": f"{_TRANSFORMS}.RegexRouter",
    "transforms.e.regex": "(.*)",
    "transforms.e.replacement": "copy-$1",
}
_PATIENCE_SECONDS = 300.0


class _Stage:
    """The services that tasks work between."""

    def __init__(self, broker: BrokerProcess, worker: ConnectProcess, folder: Path) -> None:
        self.broker = broker
        self.worker = worker
        self.folder = folder
        self.admin = Admin(ClientSettings(bootstrap_servers=broker.bootstrap, properties={"log_level": "0"}))
        self.name = ""
        self._carried = 0

    def carry(self, config: Mapping[str, str], count: int, done: Callable[[], int]) -> tuple[float, float]:
        """Records per second from the first to the last, and µs of the task's own processor time per record."""
        self._carried += 1
        self.name = name = f"measured-{self._carried}"
        created = time.monotonic()
        self.worker.create(name, config)
        began, before = self._wait_until(done, 1)
        ended, after = self._wait_until(done, count)
        if before == after:  # all at once
            began, before = created, 0
        time.sleep(1.2)  # what tasks have counted is told every second
        cost = self._cpu_seconds(name) / count * 1e6
        self.worker.delete(name)
        return (after - before) / max(ended - began, 1e-9), cost

    def _wait_until(self, done: Callable[[], int], count: int) -> tuple[float, int]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (found := done()) < count:
            status = self.worker.status(self.name) if time.monotonic() > deadline else None
            assert status is None, (found, count, status, self.worker.log_tail())
            time.sleep(0.01)
        return time.monotonic(), found

    def _cpu_seconds(self, name: str) -> float:
        line = f'caudal_connect_cpu_seconds_total{{connector="{name}",task="0"}} '
        text = self.worker.ask("GET", "/metrics").text
        return next((float(found.removeprefix(line)) for found in text.splitlines() if found.startswith(line)), 0.0)

    def end_of(self, topic: str) -> int:
        """How many records a topic of one partition holds."""
        if topic not in self.admin.topic_names():
            return 0
        return self.admin.offsets([(topic, 0)], "latest")[topic, 0]


def connect(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Every kind of task, one after the other, each alone on a worker with one task process."""
    count = sizes.connect_records
    settings = {"task.processes": "1", "offset.flush.interval.ms": "1000"}
    with (
        BrokerProcess(directory / "connect-broker", settings=AS_DELIVERED) as broker,
        RegistryProcess(directory / "connect-registry") as registry,
        ConnectProcess(directory / "connect", bootstrap=broker.bootstrap, settings=settings) as worker,
    ):
        yield Row(
            what="Connect worker ready",
            result=f"{worker.ready_after_s:.2f} s, {resident_bytes(worker.pid) / MB:.0f} MB",
            how="from starting the process to its ready line: topics created and read, leader elected",
        )
        stage = _Stage(broker, worker, directory)
        _fill(broker, registry, count)
        yield from _files(stage, count)
        yield from _converted(stage, registry, count)
        with running_server() as postgres:
            yield from _sql(stage, postgres, count)
        yield from _rest(worker, sizes.connect_connectors)


# --- files ---


def _files(stage: _Stage, count: int) -> Iterator[Row]:
    lines = stage.folder / "lines.txt"
    with lines.open("w") as file:
        file.writelines(f"{json.dumps(_order(number))}\n" for number in range(count))
    text = {"key.converter": _TEXT, "value.converter": _TEXT}
    source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": "lines", **text}
    rate, cost = stage.carry(source, count, lambda: stage.end_of("lines"))
    yield _row("file → topic", rate, cost, "> 50,000/s", "FileStreamSource, StringConverter, lines of 200 bytes")
    out = stage.folder / "out.txt"
    sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": "lines", **text}
    size = lines.stat().st_size // count
    rate, cost = stage.carry(sink, count, lambda: _about(out, lines, size, count))
    yield _row("topic → file", rate, cost, "> 50,000/s", "FileStreamSink, StringConverter, the same lines")


def _about(file: Path, whole: Path, size: int, count: int) -> int:
    """How many lines a file has, by its size: counting them would take the task's time."""
    found = file.stat().st_size if file.exists() else 0
    return count if found >= whole.stat().st_size else found // size


# --- converters and transforms ---


def _converted(stage: _Stage, registry: RegistryProcess, count: int) -> Iterator[Row]:
    plain = {"key.converter": _TEXT, "value.converter": _JSON, "value.converter.schemas.enable": "false"}
    avro = {"key.converter": _TEXT, "value.converter": _AVRO, "value.converter.schema.registry.url": registry.url}
    one = {key: text for key, text in _FIVE.items() if key.startswith("transforms.b.")} | {"transforms": "b"}
    for what, topic, options, aim, how in (
        ("topic → file, JSON", "orders-json", plain, "", "JSON without schemas, 9 fields, 200 bytes"),
        ("topic → file, Avro", "orders-avro", avro, "", "the same as Avro"),
        ("topic → file, Avro, one transform", "orders-avro", {**avro, **one}, "> 30,000/s", "and InsertField"),
        ("topic → file, JSON, five transforms", "orders-json", {**plain, **_FIVE}, "", _five()),
        ("topic → file, Avro, five transforms", "orders-avro", {**avro, **_FIVE}, "", _five()),
    ):
        folder = stage.folder / what.replace(" ", "").replace("→", "-").replace(",", "-")
        sink = {"connector.class": "DirectorySink", "path": str(folder), "format": "json", **options}
        sink |= {"topics": topic, "flush.size": str(max(1, count // 5)), "rotate.schedule.interval.ms": "2000"}
        rate, cost = stage.carry(sink, count, lambda: _committed(stage))
        yield _row(what, rate, cost, aim, f"{how}; DirectorySink, JSON lines, by committed offsets")


def _five() -> str:
    return "ReplaceField, InsertField, Cast, MaskField, RegexRouter"


def _committed(stage: _Stage) -> int:
    offsets = stage.admin.group_offsets(f"connect-{stage.name}")
    return sum(offsets.values())


# --- SQL ---


def _sql(stage: _Stage, postgres: PostgresServer, count: int) -> Iterator[Row]:
    database = postgres.create_database()
    plain = {"key.converter": _TEXT, "value.converter": _JSON, "value.converter.schemas.enable": "false"}
    sink = {
        "connector.class": "JdbcSink",
        "connection.url": database,
        "topics": "orders-json",
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "auto.create": "true",
        "batch.size": "3000",
        "consumer.override.max.poll.records": "3000",
        **plain,
    }
    engine = sqlalchemy.create_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    rate, cost = stage.carry(sink, count, lambda: _committed(stage))
    yield _row("topic → PostgreSQL, upsert", rate, cost, "> 10,000/s", "JdbcSink, batches of 3,000, plain JSON")
    source = {
        "connector.class": "JdbcSource",
        "connection.url": database,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "orders-json",
        "topic.prefix": "copy-",
        "batch.max.rows": "5000",
        "poll.interval.ms": "10",
        **plain,
    }
    rate, cost = stage.carry(source, count, lambda: stage.end_of("copy-orders-json"))
    yield _row("PostgreSQL → topic", rate, cost, "", "JdbcSource, incrementing, JSON without schemas, 9 columns")
    engine.dispose()


# --- REST ---


def _rest(worker: ConnectProcess, count: int) -> Iterator[Row]:
    config = {"connector.class": "FileStreamSource", "file": "/dev/null", "topic": "nothing"}
    bodies = [{"name": f"idle-{number}", "config": config, "initial_state": "STOPPED"} for number in range(count)]
    load = send_all(
        worker.url, [request("POST", "/connectors", json.dumps(body).encode()) for body in bodies], connections=1
    )
    assert set(load.statuses) == {b"201"}, load.statuses
    yield Row(
        what=f"create {count:,} connectors",
        result=f"{count / load.seconds:,.0f}/s",
        how="POST /connectors one after the other, initial_state STOPPED; each is written to the config topic",
    )
    for what, target in (
        ("list", "/connectors"),
        ("list with info and status", "/connectors?expand=info&expand=status"),
        ("status of one", "/connectors/idle-1/status"),
    ):
        load = send_all(worker.url, [request("GET", target)] * 200, connections=1)
        assert set(load.statuses) == {b"200"}, load.statuses
        yield Row(
            what=f"REST, {count:,} connectors: {what}",
            result=f"{200 / load.seconds:,.0f}/s, p99 {percentile(load.waits, 0.99) * 1000:.1f} ms",
            how=f"GET {target}, one connection",
        )


# --- records ---


def _order(number: int) -> dict[str, object]:
    chooser = random.Random(number)
    fields: dict[str, object] = {name: f"{name}-{chooser.randrange(10**6)}" for name in _FIELDS}
    return {"id": number, **fields, "amount": chooser.random() * 100, "at": 1_700_000_000_000 + number}


def _fill(broker: BrokerProcess, registry: RegistryProcess, count: int) -> None:
    admin = Admin(ClientSettings(bootstrap_servers=broker.bootstrap, properties={"log_level": "0"}))
    for topic in ("lines", "orders-json", "orders-avro", "copy-orders-json"):
        admin.create_topic(topic, partitions=1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    )
    with RegistryClient(RegistryClientSettings.parse({"schema.registry.url": registry.url})) as client:
        serializer = Serializer(client, SchemaDefinition(json.dumps(_SCHEMA)))
        for number in range(count):
            order = _order(number)
            producer.produce("orders-json", json.dumps(order).encode())
            producer.produce("orders-avro", serializer.serialize("orders-avro", order))
            if number % 1000 == 0:
                producer.poll(0)
    assert producer.flush(60) == 0


def _row(what: str, rate: float, cost: float, aim: str, how: str) -> Row:
    return Row(what=what, result=f"{rate:,.0f} records/s", aim=aim, how=f"{how}; {cost:.1f} µs of the task's CPU each")
