"""A platform under siege: orders flow into a topic, a SQL table and a Spark table while its parts are killed."""

import io
import os
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import fastavro
import httpx2
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, PlatformProcess
from tests.support.platform_load import SCHEMA, Acknowledged, Sender
from tests.support.spark_java import java_problem
from tests.support.spark_tables import parquet_rows

TOPIC: Final = "orders"
LETTERS: Final = "orders-dead"
"""The dead letters of the Spark sink."""
HAS_SPARK: Final = java_problem() is None
HTTP_IDS: Final = 1_000_000_000
"""Ids of orders that come over HTTP begin here."""
_PARTITIONS: Final = 2
_SPARK_PATIENCE_S: Final = 300.0
_PAUSE_S: Final = 0.3
_MAGIC: Final = b"\0"
"""The first byte of a record with a schema."""
_FAILURE: Final = re.compile(r"the task failed|connector failed")


@dataclass(slots=True)
class Outcome:
    """What was acknowledged, and what was found after all that."""

    restarts: dict[str, int] = field(default_factory=dict)
    engines: list[int] = field(default_factory=list)
    """Processes of Spark's engine, one after the other."""
    acknowledged: Acknowledged = field(default_factory=dict)
    in_topic: Acknowledged = field(default_factory=dict)
    garbled: set[tuple[int, int]] = field(default_factory=set)
    """Where the topic has records that are no orders."""
    in_sql: set[int] = field(default_factory=set)
    in_spark: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    spark_ids: set[int] = field(default_factory=set)
    letters: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    """Where the dead letters of the Spark sink were read."""
    states: set[str] = field(default_factory=set)
    """Of all connectors and tasks."""
    failures: list[str] = field(default_factory=list)
    """Lines of Connect's log about connectors and tasks that failed."""


class Siege:
    """The platform, its sinks, and what is done to them."""

    def __init__(self, platform: PlatformProcess, folder: Path) -> None:
        self._platform = platform
        self._database = folder / "orders.db"
        self._table = platform.data / "spark" / "warehouse" / TOPIC
        self._engines: list[int] = []

    def create(self) -> None:
        """Make the topic and the sinks."""
        admin = AdminClient({"bootstrap.servers": self._platform.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, _PARTITIONS)])[TOPIC].result(PATIENCE_S)
        shared = {
            "topics": TOPIC,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": self._platform.url("registry"),
            "errors.tolerance": "all",
            "errors.deadletterqueue.context.headers.enable": "true",
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
            "errors.deadletterqueue.topic.name": "orders-sql-dead",
        }
        spark = {
            "connector.class": "SparkSink",
            "trigger.interval.ms": "500",
            "errors.deadletterqueue.topic.name": LETTERS,
        }
        self._connect("to-sql", {**shared, **sql})
        if HAS_SPARK:
            self._connect("to-spark", {**shared, **spark})

    def wait_until_everything_flows(self, *senders: Sender) -> None:
        """Wait until each sender is acknowledged again, and each sink has written more than it has now."""
        rows, files = len(self._in_sql()), self._spark_files()
        for sender in senders:
            sender.wait_for_more()
        eventually(lambda: len(self._in_sql()) > rows, timeout_s=PATIENCE_S, pause_s=_PAUSE_S)
        if HAS_SPARK:
            eventually(lambda: self._spark_files() - files, timeout_s=_SPARK_PATIENCE_S, pause_s=_PAUSE_S)

    def kill(self, name: str) -> None:
        """Kill a service, and wait for the launcher to bring it back."""
        self.signal(name, signal.SIGKILL)

    def signal(self, name: str, number: signal.Signals) -> None:
        """End a service with a signal, and wait for the launcher to bring it back."""
        before = self._platform.service(name)
        assert before.pid is not None
        os.kill(before.pid, number)
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
        in_topic, garbled = self._in_topic()
        wanted = set(in_topic.values())
        eventually(lambda: len(wanted - self._in_sql()), lambda left: left == 0, timeout_s=PATIENCE_S, pause_s=_PAUSE_S)
        rows: list[dict[str, Any]] = []
        letters: Counter[tuple[int, int]] = Counter()
        if HAS_SPARK:
            # Time alone decides whether there are enough; whether they are the right ones is judged by the tests.
            rows = eventually(
                self._in_spark,
                lambda found: len(found) >= len(in_topic),
                timeout_s=_SPARK_PATIENCE_S,
                pause_s=_PAUSE_S,
            )
            letters = eventually(
                self._letters, lambda found: found.total() >= len(garbled), timeout_s=PATIENCE_S, pause_s=_PAUSE_S
            )
        return Outcome(
            restarts={name: service.restarts for name, service in self._platform.state.services.items()},
            engines=self._engines,
            acknowledged=acknowledged,
            in_topic=in_topic,
            garbled=garbled,
            in_sql=self._in_sql(),
            in_spark=Counter((row["_partition"], row["_offset"]) for row in rows),
            spark_ids={row["id"] for row in rows},
            letters=letters,
            states=self._states(),
            failures=[line for line in self._platform.log("connect").splitlines() if _FAILURE.search(line)],
        )

    def replicas(self) -> dict[str, set[int]]:
        """How many replicas the partitions of each topic have."""
        admin = AdminClient({"bootstrap.servers": self._platform.bootstrap, "log_level": 0})
        found = admin.list_topics(timeout=PATIENCE_S).topics
        return {name: {len(item.replicas) for item in topic.partitions.values()} for name, topic in found.items()}

    def _connect(self, name: str, config: Mapping[str, str]) -> None:
        url = f"{self._platform.url('connect')}/connectors/{name}/config"
        httpx2.put(url, json=config, timeout=PATIENCE_S).raise_for_status()

    def _states(self) -> set[str]:
        url = f"{self._platform.url('connect')}/connectors?expand=status"
        statuses = [item["status"] for item in httpx2.get(url, timeout=PATIENCE_S).json().values()]
        return {part["state"] for status in statuses for part in (status["connector"], *status["tasks"])}

    def _in_topic(self) -> tuple[Acknowledged, set[tuple[int, int]]]:
        """The orders by their places, and the places of all else."""
        orders: Acknowledged = {}
        garbled: set[tuple[int, int]] = set()
        for message in self._read(TOPIC, range(_PARTITIONS)):
            place, value = (message.partition() or 0, message.offset() or 0), message.value()
            assert value is not None
            if value.startswith(_MAGIC):
                orders[place] = _id_of(value)
            else:
                garbled.add(place)
        return orders, garbled

    def _letters(self) -> "Counter[tuple[int, int]]":
        """Where the dead letters of the Spark sink come from."""
        found: Counter[tuple[int, int]] = Counter()
        for message in self._read(LETTERS, [0]):
            headers = dict(message.headers() or ())
            partition, offset = (headers[f"__connect.errors.{name}"] or "" for name in ("partition", "offset"))
            found[int(partition), int(offset)] += 1
        return found

    def _read(self, topic: str, partitions: Iterable[int]) -> Iterator[Message]:
        """Everything that is committed in a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._platform.bootstrap,
                "group.id": "judge",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        with ExitStack() as closed:
            closed.callback(consumer.close)
            left = set(partitions)
            consumer.assign([TopicPartition(topic, number, 0) for number in left])
            while left:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, f"{topic} cannot be read to its end"
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)

    def _in_sql(self) -> set[int]:
        if not self._database.exists():
            return set()
        # Not read-only: the first reader after a kill of the writer has to roll back what it had begun.
        with closing(sqlite3.connect(f"file:{self._database}?mode=rw", uri=True, timeout=PATIENCE_S)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE name = ?", (TOPIC,)).fetchall()
            return {row[0] for row in database.execute(f"SELECT id FROM {TOPIC}")} if tables else set()

    def _in_spark(self) -> list[dict[str, Any]]:
        return parquet_rows(self._table)

    def _spark_files(self) -> set[str]:
        return {file.name for file in self._table.rglob("*.parquet")} if self._table.exists() else set()


def _id_of(value: bytes) -> int:
    order = fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(SCHEMA), None)
    assert isinstance(order, dict)
    return int(order["id"])
