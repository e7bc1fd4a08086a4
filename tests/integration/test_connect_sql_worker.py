"""Tables through a real worker: configurations of Kafka Connect's JDBC connectors run as they are."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.integration.test_connect_files import committed
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.postgres import PostgresServer
from tests.support.sql_databases import PostgresDatabase

JSON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture(scope="module")
def worker(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    settings = {"exactly.once.source.support": "enabled", "task.processes": "0"}
    directory = tmp_path_factory.mktemp("connect-sql")
    with ConnectProcess(directory, bootstrap=broker.bootstrap, group="sql", settings=settings) as process:
        yield process
        assert process.is_running, process.log_tail()


def produce(broker: BrokerProcess, topic: str, records: list[tuple[str, object]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in records:
        producer.produce(topic, key=key, value=None if value is None else json.dumps(value).encode())
    assert producer.flush(30) == 0


def test_plain_json_is_upserted_and_deleted_and_only_bad_records_are_dead_letters(
    worker: ConnectProcess, broker: BrokerProcess, postgres: PostgresServer, name: str
) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE orders (id text PRIMARY KEY, amount numeric(6,2), at timestamptz, doc jsonb)")
    create_topic(broker, name)
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": name,
        "connection.url": database.url,
        "table.name.format": "orders",
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "delete.enabled": "true",
        "retry.backoff.ms": "200",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        **JSON,
    }
    worker.create(name, config)
    try:
        good = [(f"k{n}", {"amount": n, "at": "2024-07-01T10:00:00Z", "doc": {"n": n}}) for n in range(200)]
        bad: list[tuple[str, object]] = [("huge", {"amount": 1_000_000}), ("odd", {"surprise": 1})]
        produce(broker, name, [*good[:50], bad[0], *good[50:150], bad[1], *good[150:], ("k7", None)])
        eventually(lambda: len(database.rows("SELECT id FROM orders")) == 199)
        database.break_down()
        produce(broker, name, [("k8", {"amount": 88}), ("late", {"amount": 1})])
        database.mend()
        eventually(lambda: len(database.rows("SELECT id FROM orders")) == 200)
        assert database.rows("SELECT amount, doc FROM orders WHERE id = 'k8'") == [{"amount": 88, "doc": {"n": 8}}]
        assert database.rows("SELECT id FROM orders WHERE id = 'k7'") == []
        dead = [json.loads(value) for value in committed(broker, f"{name}-dead")]
        assert dead == [value for _, value in bad]
    finally:
        worker.delete(name)


def test_rows_are_in_the_topic_once_while_the_worker_is_killed_and_the_database_is_away(
    worker: ConnectProcess, broker: BrokerProcess, postgres: PostgresServer, name: str
) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE items (id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())")
    topic = f"{name}-items"
    create_topic(broker, topic)
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": database.url,
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "at",
        "incrementing.column.name": "id",
        "table.whitelist": "items",
        "topic.prefix": f"{name}-",
        "poll.interval.ms": "50",
        "batch.max.rows": "100",
        "exactly.once.support": "required",
        **JSON,
    }
    worker.create(name, config)
    try:
        for turn in range(3):
            database.run("INSERT INTO items SELECT FROM generate_series(1, 1000)")
            eventually(lambda: len(committed(broker, topic)) > turn * 1000, timeout_s=60)  # noqa: B023
            if turn == 0:
                worker.restart(kill=True)
            else:
                database.break_down()
                database.mend()
        eventually(lambda: len(committed(broker, topic)) >= 3000, timeout_s=60)
        assert [json.loads(value)["id"] for value in committed(broker, topic)] == list(range(1, 3001))
        offsets = worker.json("GET", f"/connectors/{name}/offsets")["offsets"]
        assert offsets[0]["partition"] == {"protocol": "1", "table": "public.items"}
        assert offsets[0]["offset"]["incrementing"] == 3000
    finally:
        worker.delete(name)
