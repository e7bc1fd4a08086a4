"""Pipelines under load while parts of them are killed, and a judge who counts what arrived."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess

_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_PLAIN = {
    "key.converter": _TEXT,
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
_PAUSE_SECONDS = 0.1
"""Between a few records and the next ones: what matters is that some are under way at any moment, not how many."""
_PATIENCE_SECONDS = 90.0


class Pipelines:
    """Four ways of data, all through one worker.

    * `in` → PostgreSQL by upsert: at least once, and each row once because it is found again by its key;
    * `in` → PostgreSQL by insert with offsets in the same transaction: exactly once;
    * `in` → files that get their names by offsets: exactly once;
    * a file that grows → `out`, in transactions: exactly once.
    """

    names = ("upserts", "inserts", "files", "lines")

    def __init__(self, broker: BrokerProcess, worker: ConnectProcess, database: str, folder: Path) -> None:
        self.broker = broker
        self.worker = worker
        self.database = database
        self.folder = folder
        self.lines = folder / "lines.txt"
        self.sent = 0
        self.written = 0
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._write)]

    def create(self) -> None:
        """Make topics, tables and connectors."""
        for topic in ("in", "out"):
            create_topic(self.broker, topic, partitions=2 if topic == "in" else 1)
        self.lines.touch()
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute("CREATE TABLE upserted (id bigint PRIMARY KEY)")
            connection.execute("CREATE TABLE inserted (id bigint)")
        sql = {"connector.class": "JdbcSink", "connection.url": self.database, "topics": "in", **_PLAIN}
        sql |= {"tasks.max": "2", "retry.backoff.ms": "200", "max.retries": "1000"}
        self.worker.create(
            "upserts",
            {
                **sql,
                "insert.mode": "upsert",
                "pk.mode": "record_value",
                "pk.fields": "id",
                "table.name.format": "upserted",
            },
        )
        self.worker.create("inserts", {**sql, "exactly.once": "true", "table.name.format": "inserted"})
        self.worker.create(
            "files",
            {
                "connector.class": "DirectorySink",
                "topics": "in",
                "path": str(self.folder / "files"),
                "flush.size": "500",
                "rotate.schedule.interval.ms": "500",
                **_PLAIN,
            },
        )
        self.worker.create(
            "lines",
            {
                "connector.class": "FileStreamSource",
                "file": str(self.lines),
                "topic": "out",
                "key.converter": _TEXT,
                "value.converter": _TEXT,
                "exactly.once.support": "required",
            },
        )

    def start(self) -> None:
        """Begin to send and write."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send and write no more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_PATIENCE_SECONDS)

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True, "log_level": 0})
        while not self._stopping.wait(_PAUSE_SECONDS):
            for _ in range(20):
                producer.produce("in", key=str(self.sent), value=f'{{"id": {self.sent}}}')
                self.sent += 1
            producer.poll(0)
        assert producer.flush(_PATIENCE_SECONDS) == 0

    def _write(self) -> None:
        while not self._stopping.wait(_PAUSE_SECONDS):
            with self.lines.open("a") as file:
                file.writelines(f"{number}\n" for number in range(self.written, self.written + 10))
            self.written += 10

    def seconds_until_work_resumes(self) -> float:
        """Wait until something new has arrived in the table, whatever was killed."""
        began = time.monotonic()
        before = self._count_rows()
        eventually(lambda: self._count_rows() > before, timeout_s=_PATIENCE_SECONDS, pause_s=0.1)
        return time.monotonic() - began

    def _count_rows(self) -> int:
        try:
            with psycopg.connect(self.database) as connection:
                (count,) = connection.execute("SELECT count(*) FROM upserted").fetchone() or (-1,)
                return int(count)
        except psycopg.OperationalError:
            return -1

    # --- the judge ---

    def judge(self) -> dict[str, tuple[int, int]]:
        """Wait until all has arrived; gives how many of each were lost and doubled in the end."""
        found: dict[str, Counter[int]] = {}

        def is_complete(what: str, count: int, read: Callable[[], "Counter[int]"]) -> None:
            def seen() -> int:
                found[what] = read()
                return len(found[what])

            with suppress(AssertionError):  # the counts show what is missing
                eventually(seen, lambda number: number >= count, timeout_s=_PATIENCE_SECONDS, pause_s=0.3)

        is_complete("upserts", self.sent, lambda: self._rows("upserted"))
        is_complete("inserts", self.sent, lambda: self._rows("inserted"))
        is_complete("files", self.sent, self._in_files)
        is_complete("lines", self.written, self._in_topic)
        wanted = {"upserts": self.sent, "inserts": self.sent, "files": self.sent, "lines": self.written}
        return {
            what: (wanted[what] - len(counter), sum(count - 1 for count in counter.values()))
            for what, counter in found.items()
        }

    def _rows(self, table: str) -> "Counter[int]":
        with psycopg.connect(self.database) as connection:
            return Counter(row[0] for row in connection.execute(f"SELECT id FROM {table}".encode()))

    def _in_files(self) -> "Counter[int]":
        numbers: Counter[int] = Counter()
        for file in (self.folder / "files" / "topics").rglob("*.json"):
            numbers.update(int(line.removeprefix('{"id":').removesuffix("}")) for line in file.read_text().splitlines())
        return numbers

    def _in_topic(self) -> "Counter[int]":
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "judge",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        numbers: Counter[int] = Counter()
        try:
            consumer.assign([TopicPartition("out", 0, 0)])
            while True:
                for message in consumer.consume(1000, 5.0):
                    error = message.error()
                    if error is None:
                        numbers[int(message.value() or b"")] += 1
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return numbers
        finally:
            consumer.close()


def kill_a_host(worker: ConnectProcess) -> bool:
    """Kill one task process of a worker; False when it has none now."""
    hosts = psutil.Process(worker.pid).children()
    if hosts:
        random.choice(hosts).kill()
    return bool(hosts)
