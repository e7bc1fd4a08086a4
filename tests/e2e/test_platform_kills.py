"""The whole platform under `kill -9` of each part in turn, while events flow: it comes back, and nothing that was
acknowledged is lost on the way into the topic, a SQL table and a Spark table.

All is done once for the file; each test then looks at one side of what came of it.
"""

import io
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import fastavro
import httpx2
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.stack import BY_NAME
from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, SMALL_SPARK, PlatformProcess
from tests.support.platform_load import SCHEMA, Acknowledged, HttpSender, KafkaSender
from tests.support.spark_java import java_problem, needs_java
from tests.support.spark_tables import parquet_rows

pytestmark = pytest.mark.timeout(900)  # Spark starts twice, which takes minutes where many others do so, too

_TOPIC: Final = "orders"
_PARTITIONS: Final = 2
_HAS_SPARK: Final = java_problem() is None
_SPARK_PATIENCE_S: Final = 300.0
_PAUSE_S: Final = 0.3
_HTTP_IDS: Final = 1_000_000_000
"""Ids of orders that come over HTTP begin here."""


@dataclass(slots=True)
class Outcome:
    """What was acknowledged, and what was found after all that."""

    restarts: dict[str, int] = field(default_factory=dict)
    engines: list[int] = field(default_factory=list)
    """Processes of Spark's engine, one after the other."""
    acknowledged: Acknowledged = field(default_factory=dict)
    in_topic: Acknowledged = field(default_factory=dict)
    in_sql: set[int] = field(default_factory=set)
    in_spark: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    spark_ids: set[int] = field(default_factory=set)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Everything started, loaded, killed and counted."""
    folder = tmp_path_factory.mktemp("kills")
    settings = (*SMALL_SPARK, "connect:offset.flush.interval.ms=1000")
    with PlatformProcess(folder / "platform", settings=settings) as platform:
        siege = Siege(platform, folder)
        siege.create()
        with (
            KafkaSender(platform, _TOPIC, first_id=0) as kafka,
            HttpSender(platform, _TOPIC, first_id=_HTTP_IDS) as http,
        ):
            siege.wait_until_everything_flows(kafka, http)
            for name in BY_NAME:
                siege.kill(name)
                siege.wait_until_everything_flows(kafka, http)
            if _HAS_SPARK:
                siege.kill_engine()
                siege.wait_until_everything_flows(kafka, http)
        yield siege.judged(kafka.acknowledged | http.acknowledged)


def test_the_launcher_has_brought_each_service_back_once(outcome: Outcome) -> None:
    assert outcome.restarts == dict.fromkeys(BY_NAME, 1)


def test_every_acknowledged_record_is_in_the_topic_where_it_was_acknowledged(outcome: Outcome) -> None:
    assert {number >= _HTTP_IDS for number in outcome.acknowledged.values()} == {True, False}
    found = {place: outcome.in_topic.get(place) for place in outcome.acknowledged}
    assert found == outcome.acknowledged


def test_no_record_of_the_idempotent_producer_is_in_the_topic_twice(outcome: Outcome) -> None:
    numbers = Counter(number for number in outcome.in_topic.values() if number < _HTTP_IDS)
    assert [number for number, count in numbers.items() if count > 1] == []


def test_every_acknowledged_record_is_in_the_sql_table(outcome: Outcome) -> None:
    assert set(outcome.acknowledged.values()) - outcome.in_sql == set()
    assert outcome.in_sql == set(outcome.in_topic.values())


@needs_java
def test_every_record_of_the_topic_is_in_the_spark_table_exactly_once(outcome: Outcome) -> None:
    assert outcome.in_spark == Counter(outcome.in_topic.keys())
    assert outcome.spark_ids == set(outcome.in_topic.values())


@needs_java
def test_another_engine_has_taken_over_from_the_one_that_was_killed(outcome: Outcome) -> None:
    assert len(set(outcome.engines)) == 2


class Siege:
    """The platform, its sinks, and what is done to them."""

    def __init__(self, platform: PlatformProcess, folder: Path) -> None:
        self._platform = platform
        self._database = folder / "orders.db"
        self._table = platform.data / "spark" / "warehouse" / _TOPIC
        self._engines: list[int] = []

    def create(self) -> None:
        """Make the topic and the sinks."""
        admin = AdminClient({"bootstrap.servers": self._platform.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(_TOPIC, _PARTITIONS)])[_TOPIC].result(PATIENCE_S)
        shared = {
            "topics": _TOPIC,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": self._platform.url("registry"),
        }
        sql = {
            "connector.class": "JdbcSink",
            "connection.url": f"jdbc:sqlite:{self._database}",
            "auto.create": "true",
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": "id",
            "max.retries": "1000",
            "retry.backoff.ms": "200",
        }
        self._connect("to-sql", {**shared, **sql})
        if _HAS_SPARK:
            self._connect("to-spark", {**shared, "connector.class": "SparkSink", "trigger.interval.ms": "500"})

    def wait_until_everything_flows(self, *senders: KafkaSender | HttpSender) -> None:
        """Wait until each sender is acknowledged again, and each sink has written more than it has now."""
        rows, files = len(self._in_sql()), self._spark_files()
        for sender in senders:
            sender.wait_for_more()
        eventually(lambda: len(self._in_sql()) > rows, timeout_s=PATIENCE_S, pause_s=_PAUSE_S)
        if _HAS_SPARK:
            eventually(lambda: self._spark_files() - files, timeout_s=_SPARK_PATIENCE_S, pause_s=_PAUSE_S)

    def kill(self, name: str) -> None:
        """Kill a service, and wait for the launcher to bring it back."""
        before = self._platform.service(name)
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        self._platform.wait_until_restarted(name, before=before)

    def kill_engine(self) -> None:
        """Kill Spark's engine, and wait until there is another one."""
        before = self._platform.engine()
        assert before is not None
        before.kill()
        self._engines.append(before.pid)
        eventually(lambda: (now := self._platform.engine()) and now.pid != before.pid, timeout_s=_SPARK_PATIENCE_S)
        now = self._platform.engine()
        assert now is not None
        self._engines.append(now.pid)

    def judged(self, acknowledged: Acknowledged) -> Outcome:
        """Wait until all that is in the topic is in the tables, and count."""
        in_topic = self._in_topic()
        wanted = set(in_topic.values())
        eventually(lambda: len(wanted - self._in_sql()), lambda left: left == 0, timeout_s=PATIENCE_S, pause_s=_PAUSE_S)
        rows: list[dict[str, Any]] = []
        if _HAS_SPARK:
            # Time alone decides whether there are enough; whether they are the right ones is judged by the tests.
            rows = eventually(
                self._in_spark,
                lambda found: len(found) >= len(in_topic),
                timeout_s=_SPARK_PATIENCE_S,
                pause_s=_PAUSE_S,
            )
        return Outcome(
            restarts={name: service.restarts for name, service in self._platform.state.services.items()},
            engines=self._engines,
            acknowledged=acknowledged,
            in_topic=in_topic,
            in_sql=self._in_sql(),
            in_spark=Counter((row["_partition"], row["_offset"]) for row in rows),
            spark_ids={row["id"] for row in rows},
        )

    def _connect(self, name: str, config: Mapping[str, str]) -> None:
        url = f"{self._platform.url('connect')}/connectors/{name}/config"
        httpx2.put(url, json=config, timeout=PATIENCE_S).raise_for_status()

    def _in_topic(self) -> Acknowledged:
        consumer = Consumer(
            {
                "bootstrap.servers": self._platform.bootstrap,
                "group.id": "judge",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        found: Acknowledged = {}
        with ExitStack() as closed:
            closed.callback(consumer.close)
            consumer.assign([TopicPartition(_TOPIC, number, 0) for number in range(_PARTITIONS)])
            ended = 0
            while ended < _PARTITIONS:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, "the topic cannot be read to its end"
                if message.error():
                    ended += 1
                    continue
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert value is not None
                found[partition, offset] = _id_of(value)
        return found

    def _in_sql(self) -> set[int]:
        if not self._database.exists():
            return set()
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=PATIENCE_S)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE name = ?", (_TOPIC,)).fetchall()
            return {row[0] for row in database.execute(f"SELECT id FROM {_TOPIC}")} if tables else set()

    def _in_spark(self) -> list[dict[str, Any]]:
        return parquet_rows(self._table)

    def _spark_files(self) -> set[str]:
        return {file.name for file in self._table.rglob("*.parquet")} if self._table.exists() else set()


def _id_of(value: bytes) -> int:
    order = fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(SCHEMA), None)
    assert isinstance(order, dict)
    return int(order["id"])
