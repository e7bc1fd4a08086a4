"""The topics that keep what a Connect worker knows, on a real broker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer as ForeignConsumer
from confluent_kafka import Producer as ForeignProducer
from confluent_kafka import TopicPartition

from connect.api.errors import ConfigError
from connect.settings import ConnectSettings
from connect.stores.offsets import OffsetStore
from connect.stores.states import State, TaskId
from connect.stores.statuses import StatusStore, StatusWriter
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess

Started = Callable[[OffsetStore | StatusStore], None]


@pytest.fixture
def settings(broker: BrokerProcess, name: str) -> ConnectSettings:
    return worker_settings(broker, name)


def worker_settings(broker: BrokerProcess, name: str) -> ConnectSettings:
    return ConnectSettings(
        bootstrap_servers=(broker.bootstrap,),
        group_id=name,
        config_storage_topic=f"{name}-configs",
        offset_storage_topic=f"{name}-offsets",
        offset_storage_partitions=3,
        status_storage_topic=f"{name}-status",
        status_storage_partitions=2,
    )


@pytest.fixture
def started() -> Iterator[Started]:
    stores: list[OffsetStore | StatusStore] = []

    def start(store: OffsetStore | StatusStore) -> None:
        stores.append(store)
        store.start()

    yield start
    for store in stores:
        store.stop()


def test_an_offset_that_was_put_is_read_by_another_worker(settings: ConnectSettings, started: Started) -> None:
    first, second = OffsetStore(settings), OffsetStore(settings)
    started(first)
    first.put_all("copy", [({"filename": "a"}, {"position": 10}), ({"filename": "b"}, {"position": 20})])
    started(second)
    assert second.get("copy", {"filename": "a"}) == {"position": 10}
    assert sorted(second.all("copy"), key=str) == [
        ({"filename": "a"}, {"position": 10}),
        ({"filename": "b"}, {"position": 20}),
    ]
    assert second.get("other", {"filename": "a"}) is None


def test_an_offset_that_was_put_to_none_is_forgotten(settings: ConnectSettings, started: Started) -> None:
    store = OffsetStore(settings)
    started(store)
    store.put_all("copy", [({"filename": "a"}, {"position": 10})])
    store.put_all("copy", [({"filename": "a"}, None)])
    store.refresh()
    assert store.all("copy") == []


def test_offsets_that_kafka_connect_wrote_are_found_whatever_the_order_of_fields(
    broker: BrokerProcess, settings: ConnectSettings, started: Started
) -> None:
    store = OffsetStore(settings)
    started(store)
    keys = [b'["jdbc",{"table":"t","protocol":"1"}]', b"nonsense", b'["jdbc"]', b'["jdbc",1]']
    produce(broker, settings.offset_storage_topic, [(key, b'{"incrementing":5}') for key in keys])
    store.refresh()
    assert store.all("jdbc") == [({"protocol": "1", "table": "t"}, {"incrementing": 5})]
    store.put_all("jdbc", [({"protocol": "1", "table": "t"}, {"incrementing": 6})])
    store.refresh()
    assert store.get("jdbc", {"table": "t", "protocol": "1"}) == {"incrementing": 6}
    assert consume(broker, settings.offset_storage_topic)[-1] == (keys[0], b'{"incrementing":6}')


def test_offsets_of_an_aborted_transaction_are_not_seen(
    broker: BrokerProcess, settings: ConnectSettings, started: Started, name: str
) -> None:
    store = OffsetStore(settings)
    started(store)
    producer = ForeignProducer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for position, finish in ((1, producer.commit_transaction), (2, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(settings.offset_storage_topic, key=b'["c",{}]', value=b'{"position":%d}' % position)
        producer.flush(10)
        finish(30)
    store.refresh()
    assert store.get("c", {}) == {"position": 1}


def test_a_topic_that_is_not_compacted_is_refused(broker: BrokerProcess, settings: ConnectSettings) -> None:
    create_topic(broker, settings.offset_storage_topic, configs={"cleanup.policy": "compact,delete"})
    with pytest.raises(ConfigError, match=r"offset\.storage\.topic.*cleanup\.policy=compact.*compact,delete"):
        OffsetStore(settings).start()


def test_a_status_is_read_by_another_worker_and_forgotten_when_destroyed(
    broker: BrokerProcess, settings: ConnectSettings, started: Started
) -> None:
    here, there = StatusStore(settings), StatusStore(settings)
    started(here)
    started(there)
    writer, task = StatusWriter(settings), TaskId("c", 0)
    writer.put_task(task, State.FAILED, worker_id="w:1", generation=3, trace="why")
    here.put_connector("c", State.RUNNING, worker_id="w:1", generation=3)
    writer.close()
    found = eventually(lambda: there.task(task))
    assert found is not None
    assert (found.state, found.trace, found.generation) == (State.FAILED, "why", 3)
    eventually(lambda: there.connector("c"))
    here.put_task(task, State.DESTROYED, worker_id="w:1", generation=3)
    eventually(lambda: there.task(task) is None)
    records = dict(consume(broker, settings.status_storage_topic))
    assert msgspec.json.decode(records[b"status-connector-c"] or b"") == {
        "state": "RUNNING",
        "trace": None,
        "worker_id": "w:1",
        "generation": 3,
    }
    assert records[b"status-task-c-0"] is None


def test_what_an_earlier_generation_says_late_is_passed_over(settings: ConnectSettings, started: Started) -> None:
    store, task = StatusStore(settings), TaskId("a-b", 12)
    started(store)
    store.put_task(task, State.RUNNING, worker_id="w:1", generation=5)
    store.flush()
    late = StatusWriter(settings)
    late.put_task(task, State.FAILED, worker_id="w:0", generation=4)
    late.put_topic("orders", task)
    late.close()
    eventually(lambda: store.topics("a-b"))
    store.refresh()
    found = store.task(task)
    assert found is not None
    assert found.state == State.RUNNING


def test_topics_that_a_connector_uses_are_known_until_they_are_reset(
    settings: ConnectSettings, started: Started
) -> None:
    store = StatusStore(settings)
    started(store)
    store.put_topic("orders", TaskId("c", 1))
    assert [(use.name, use.task) for use in store.topics("c")] == [("orders", 1)]
    store.delete_topic("orders", "c")
    store.flush()
    store.refresh()
    assert store.topics("c") == []


def test_stores_go_on_after_the_broker_was_killed(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        settings = worker_settings(broker, name)
        offsets, statuses = OffsetStore(settings), StatusStore(settings)
        offsets.start()
        statuses.start()
        offsets.put_all("c", [({}, {"position": 1})])
        broker.kill()
        statuses.put_connector("c", State.RUNNING, worker_id="w", generation=1)
        broker.start()
        offsets.put_all("c", [({}, {"position": 2})])
        offsets.refresh()
        assert offsets.get("c", {}) == {"position": 2}
        assert statuses.flush(30)
        statuses.refresh()
        statuses.stop()
        offsets.stop()


def produce(broker: BrokerProcess, topic: str, pairs: list[tuple[bytes, bytes]]) -> None:
    producer = ForeignProducer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for key, value in pairs:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(30) == 0


def consume(broker: BrokerProcess, topic: str) -> list[tuple[bytes, bytes | None]]:
    """Everything in a topic, as a foreign client reads it."""
    consumer = ForeignConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "look",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: list[tuple[int, bytes, bytes | None]] = []
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append((message.timestamp()[1], message.key() or b"", message.value()))
    consumer.close()
    return [(key, value) for _, key, value in sorted(found, key=lambda item: item[0])]
