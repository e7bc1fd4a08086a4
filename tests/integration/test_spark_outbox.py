"""Staged records and the group's offsets, sent in one transaction to a real broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from connect.api.engine import TopicChoice
from connectors.spark.operations import alter_offsets
from connectors.spark.spec import SinkFolders, SinkSpec
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings
from streams.settings import SparkSettings
from streams.spark.commits.manifest import Manifest, ManifestStore, Replaced
from streams.spark.commits.outbox import Outbox
from streams.spark.commits.staged_records import stage_records
from streams.spark.engine.job import EngineContext
from streams.spark.files import Files
from streams.spark.tables import Tables
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess


@pytest.fixture
def outboxes(broker: BrokerProcess, name: str) -> Iterator[list[Outbox]]:
    """Two runs of the same query."""
    create_topic(broker, name)
    create_topic(broker, f"{name}-dead")
    settings = ClientSettings(bootstrap_servers=broker.bootstrap)
    made = [
        Outbox(f"sink {name}", group=f"connect-{name}", transactional_id=name, admin=settings, producer=settings)
        for _ in range(2)
    ]
    yield made
    for outbox in made:
        outbox.close()


def batch(name: str, folder: Path, end: int) -> Manifest:
    records = [OutgoingRecord(topic=f"{name}-dead", value=b"%d" % number) for number in range(3)]
    return Manifest(run=1, ends={name: {0: end}}, records=(stage_records(records, str(folder)),))


def dead_letters(broker: BrokerProcess, name: str, count: int) -> list[bytes | None]:
    """As many records of the topic, and a last one that shows that there are no more."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": f"{name}-reader", "auto.offset.reset": "earliest"}
        | {"enable.partition.eof": True, "isolation.level": "read_committed"}
    )
    consumer.subscribe([f"{name}-dead"])
    found: list[bytes | None] = []
    try:
        while len(found) <= count:
            message = consumer.poll(60)
            assert message is not None
            if message.error():
                if len(found) == count:
                    return found
                continue
            found.append(message.value())
    finally:
        consumer.close()
    return found


def test_records_of_a_batch_are_sent_once_however_often_it_is_repeated(
    broker: BrokerProcess, name: str, tmp_path: Path, outboxes: list[Outbox]
) -> None:
    manifest = batch(name, tmp_path, 7)
    for outbox in outboxes:
        outbox.send(manifest)
    assert outboxes[1].committed() == {(name, 0): 7}
    assert dead_letters(broker, name, 3) == [b"0", b"1", b"2"]


def test_a_run_that_was_replaced_sends_nothing(
    broker: BrokerProcess, name: str, tmp_path: Path, outboxes: list[Outbox]
) -> None:
    first, second = outboxes
    first.send(batch(name, tmp_path, 1))
    second.send(batch(name, tmp_path, 2))
    with pytest.raises(Replaced):
        first.send(batch(name, tmp_path, 3))
    assert second.committed() == {(name, 0): 2}


def test_dead_letters_of_an_interrupted_batch_are_sent_before_offsets_are_altered(
    broker: BrokerProcess, name: str, tmp_path: Path, outboxes: list[Outbox]
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap}
    spec = SinkSpec(
        connector=name,
        consumer=kafka,
        producer=kafka,
        admin=kafka,
        group=f"connect-{name}",
        topics=TopicChoice(names=(name,)),
        options={},
    )
    settings = SparkSettings.among({"spark.caudal.warehouse.dir": str(tmp_path)})
    folders = SinkFolders.of(settings.warehouse, name)
    ManifestStore(Files(), folders.manifest, query=name).write(batch(name, tmp_path, 7))
    place = EngineContext(cast("SparkSession", None), settings)
    place.tables = cast("Tables", None)  # The batch has no rows.
    alter_offsets(place, {"spec": spec.as_json(), "offsets": [[name, 0, 2]]})
    assert dead_letters(broker, name, 3) == [b"0", b"1", b"2"]
    manifest = ManifestStore(Files(), folders.manifest, query=name).read()
    assert manifest is not None
    assert manifest.positions == {name: {0: 2}}
