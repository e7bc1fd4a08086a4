"""The service of SQL in the process of a test, as the REST API uses it."""

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from streams.server.service import Service
from streams.settings import StreamsSettings
from tests.support.broker import BrokerProcess
from tests.support.spark_engine import QUICK, engine_settings, patiently
from tests.support.streams_queries import read_topic

_numbers: Final = itertools.count(1)
WITHOUT_ENGINE: Final = {"spark.caudal.start": "never", "spark.caudal.start.timeout.ms": "1000"}
"""What is defined is not run."""


class Desk:
    """One server of the service, and what tests do with it."""

    def __init__(self, service: Service, broker: BrokerProcess) -> None:
        self.service = service
        self.broker = broker

    def run(self, text: str, properties: Mapping[str, object] | None = None, **variables: str) -> list[Any]:
        """Carry out statements."""
        return self.service.execute(text, properties=properties or {}, variables=variables)

    def one(self, text: str, properties: Mapping[str, object] | None = None, **variables: str) -> Any:
        """Carry out one statement, which has one answer."""
        (entity,) = self.run(text, properties, **variables)
        return entity

    def topics(self) -> set[str]:
        """The topics of the cluster."""
        return set(self.service.topics.partitions())

    def send(self, topic: str, *records: tuple[str | None, Any]) -> None:
        """Write records with JSON values."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "partitioner": "murmur2_random"})
        for key, value in records:
            producer.produce(topic, None if value is None else json.dumps(value).encode(), key)
        assert producer.flush(30) == 0

    def values(self, topic: str) -> list[Any]:
        """The values of all records of a topic that are committed."""
        return [record.value for record in read_topic(self.broker.bootstrap, topic)]

    def status(self, query_id: str) -> str:
        """The state of a query as SHOW QUERIES shows it."""
        states: dict[str, str] = {query["id"]: query["state"] for query in self.one("SHOW QUERIES;")["queries"]}
        return states.get(query_id, "GONE")


def service_settings(
    broker: BrokerProcess, folder: Path, more: Mapping[str, str] | None = None, *, service_id: str
) -> StreamsSettings:
    """Settings of a server with files in a folder."""
    return StreamsSettings.parse(
        {
            "listeners": "http://127.0.0.1:0",
            "bootstrap.servers": broker.bootstrap,
            "ksql.service.id": service_id,
            "ksql.streams.state.dir": str(folder / "state"),
            "ksql.streams.auto.offset.reset": "earliest",
            **engine_settings(folder / "engine", QUICK).as_text(),
            **(more or {}),
        }
    )


@contextmanager
def running_service(
    broker: BrokerProcess, folder: Path, more: Mapping[str, str] | None = None, *, service_id: str = ""
) -> Iterator[Desk]:
    """A server that has read its definitions and runs their queries."""
    settings = service_settings(broker, folder, more, service_id=service_id or f"test{next(_numbers)}_")
    service = Service(settings)
    try:
        service.start()
        patiently(lambda: service.runs_queries or bool(service_id))
        yield Desk(service, broker)
    finally:
        service.close()
