"""Queries in an engine, with plans written by hand, and the topics that they read and write."""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from streams.model.plan import Input, QueryPlan
from streams.model.sources import Column, Format, Source
from streams.spark.engine.client import Engine
from streams.spark.queries.spec import QuerySpec
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.patience import eventually

JSON: Final = Format(name="JSON")
KAFKA: Final = Format(name="KAFKA")
_PATIENCE_S: Final = 120.0
_numbers: Final = itertools.count(1)


class Written(NamedTuple):
    """A record as a consumer with `read_committed` gets it; JSON where that is possible."""

    key: bytes | None
    value: Any
    timestamp_ms: int
    headers: dict[str, bytes]
    partition: int


def fresh(name: str) -> str:
    """A name that no other test uses."""
    return f"{name}_{next(_numbers)}"


def source(
    topic: str, kind: str = "STREAM", *, key: Mapping[str, str] | None = None, value: Mapping[str, str], **more: Any
) -> Source:
    """A stream or a table of JSON, with keys of Kafka's own formats."""
    return Source(
        name=topic.upper(),
        kind="TABLE" if kind == "TABLE" else "STREAM",
        topic=topic,
        key_format=KAFKA if key else Format(name="NONE"),
        value_format=JSON,
        key=tuple(Column(*column) for column in (key or {}).items()),
        value=tuple(Column(*column) for column in value.items()),
        **more,
    )


def read_from_start(given: Source, view: str | None = None, **more: Any) -> Input:
    """An input that reads everything."""
    return Input(view=view or given.name, source=given, starting="earliest", **more)


class Bench:
    """A broker and an engine, and what tests do with them."""

    def __init__(self, broker: BrokerProcess, engine: Engine, folder: Path) -> None:
        self.broker = broker
        self.engine = engine
        self.folder = folder
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
        self._running: list[str] = []

    @property
    def cluster(self) -> dict[str, str]:
        """Client properties of the broker."""
        return {"bootstrap.servers": self.broker.bootstrap}

    def topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """A new topic, whose name begins like this."""
        topic = fresh(name)
        # Records of tests are of long ago.
        create_topic(self.broker, topic, partitions=partitions, configs={"retention.ms": "-1", **(configs or {})})
        return topic

    def spec(self, plan: QueryPlan, **more: Any) -> QuerySpec:
        """What the engine gets for a plan."""
        return QuerySpec(plan=plan, cluster=self.cluster, folder=str(self.folder), **more)

    def run(self, plan: QueryPlan, **more: Any) -> None:
        """Start a query."""
        self.engine.run(plan.name, "streams-query", msgspec.to_builtins(self.spec(plan, **more)))
        self._running.append(plan.name)

    def stop(self, name: str) -> None:
        """Stop a query."""
        self.engine.stop(name, timeout_seconds=60)
        self._running.remove(name)

    def stop_all(self) -> None:
        """Stop every query."""
        for name in list(self._running):
            self.stop(name)

    def send(self, topic: str, records: Iterable[Sequence[Any]], *, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        """Write records: each a key, a value (None, bytes, or what becomes JSON), perhaps a time and a partition."""
        for key, value, *rest in records:
            data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            named = zip(("timestamp", "partition"), rest, strict=False)
            more = {name: item for name, item in named if item is not None}
            self._producer.produce(topic, data, key, headers=list(headers) or None, **more)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0

    def written(self, topic: str) -> list[Written]:
        """All records of a topic that are committed."""
        return list(read_topic(self.broker.bootstrap, topic))

    def values(self, topic: str) -> list[Any]:
        """Their values."""
        return [record.value for record in self.written(topic)]

    def wait_for(
        self, topic: str, accept: Callable[[list[Written]], bool], *, query: str | None = None
    ) -> list[Written]:
        """The records of a topic, once they are accepted; fails with what the query says."""
        deadline = time.monotonic() + _PATIENCE_S
        while not accept(found := self.written(topic)):
            status = None if query is None else self.engine.status(query)
            assert status is None or status.state != "failed", status.error
            assert time.monotonic() < deadline, (found[-20:], status, query and self.progress(query))
            time.sleep(0.1)
        return found

    def progress(self, name: str) -> dict[str, Any]:
        """How far a query is."""
        found: dict[str, dict[str, Any]] = eventually(lambda: self.engine.call("streams-progress", names=[name]))
        return found[name]

    def wait_until_read(self, name: str, topic: str, count: int) -> dict[str, Any]:
        """Its progress, once it has read so many records of a topic."""

        def accept(found: dict[str, Any]) -> bool:
            assert found["state"] != "failed", found
            offsets: dict[str, int] = found["offsets"].get(topic, {})
            return sum(offsets.values()) >= count

        return eventually(lambda: self.progress(name), accept, timeout_s=_PATIENCE_S)

    def take(self, name: str, count: int) -> dict[str, Any]:
        """Rows of a push query, once there are so many of them or no more will come."""
        rows: list[Any] = []
        tombstones: list[bool] = []
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            found: dict[str, Any] = self.engine.call("streams-rows", name=name, wait_ms=1000, limit=1000)
            rows += found["rows"]
            tombstones += found["tombstones"]
            if len(rows) >= count or found["done"]:
                return {**found, "rows": rows, "tombstones": tombstones}
            assert time.monotonic() < deadline, (rows, self.engine.status(name))


def read_topic(bootstrap: str, topic: str) -> Iterable[Written]:
    """All committed records of a topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reads-everything",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        for partition in sorted(partitions):
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            while (message := consumer.poll(30)) is not None and message.error() is None:
                yield Written(
                    message.key(),
                    _document(message.value()),
                    message.timestamp()[1],
                    _headers(message),
                    partition,
                )
    finally:
        consumer.close()


def _headers(message: Message) -> dict[str, bytes]:
    return {name: value if isinstance(value, bytes) else b"" for name, value in dict(message.headers() or ()).items()}


def _document(data: bytes | None) -> Any:
    try:
        return None if data is None else json.loads(data)
    except ValueError:
        return data
