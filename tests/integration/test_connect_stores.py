"""The topics that keep what a Connect worker knows, on a real broker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer as ForeignProducer

from connect.api.errors import ConfigError
from connect.settings import ConnectSettings
from connect.stores.config_records import Leader
from connect.stores.config_writer import ConfigWriter, LeadershipLost
from connect.stores.configs import ConfigStore, DesiredConnector
from connect.stores.offsets import OffsetStore
from connect.stores.states import State, Target, TaskId
from connect.stores.statuses import StatusStore, StatusWriter
from core_broker.service.clock import ManualClock
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect_worker import consume, worker_settings

Store = OffsetStore | StatusStore | ConfigStore
Started = Callable[[Store], None]


@pytest.fixture
def settings(broker: BrokerProcess, name: str) -> ConnectSettings:
    return worker_settings(broker, name)


@pytest.fixture
def started() -> Iterator[Started]:
    stores: list[Store] = []

    def start(store: Store) -> None:
        stores.append(store)
        store.start()

    yield start
    for store in stores:
        store.stop()


@pytest.fixture
def config_store(settings: ConnectSettings, started: Started) -> ConfigStore:
    store = ConfigStore(settings)
    started(store)
    return store


@pytest.fixture
def writer(settings: ConnectSettings, config_store: ConfigStore) -> Iterator[ConfigWriter]:
    writer = ConfigWriter(settings, config_store)
    writer.start()
    yield writer
    writer.close()


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
        producer.flush(60)
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


def test_a_status_does_not_fall_back_to_an_earlier_one_that_is_read_back_late(
    settings: ConnectSettings, started: Started
) -> None:
    store = StatusStore(settings)
    started(store)
    seen: list[State | None] = []
    store.listeners.append(lambda name, _: seen.append(status.state if (status := store.connector(name)) else None))
    put = [State.UNASSIGNED, State.STOPPED, State.DESTROYED] * 20
    for state in put:
        store.put_connector("c", state, worker_id="w:1", generation=1)
        # It is in the topic now, and is read back while the next one is being put.
        assert store.flush()
    store.refresh()
    assert seen == [None if state is State.DESTROYED else state for state in put]


def test_what_another_worker_says_after_this_one_counts(settings: ConnectSettings, started: Started) -> None:
    store, task = StatusStore(settings), TaskId("c", 0)
    started(store)
    other = StatusWriter(settings)
    for said_here, said_there in ((State.RESTARTING, State.RUNNING), (State.DESTROYED, State.FAILED)):
        store.put_task(task, said_here, worker_id="w:1", generation=1)
        assert store.flush()
        other.put_task(task, said_there, worker_id="w:2", generation=1)
        assert other.flush()
        store.refresh()
        found = store.task(task)
        assert found is not None
        assert found.state is said_there
    other.close()


def test_topics_that_a_connector_uses_are_known_until_they_are_reset(
    broker: BrokerProcess, settings: ConnectSettings, started: Started
) -> None:
    store = StatusStore(settings, clock=ManualClock(1_700_000_000_000))
    started(store)
    store.put_topic("orders", TaskId("c", 1))
    store.flush()
    assert [(use.name, use.task) for use in store.topics("c")] == [("orders", 1)]
    assert consume(broker, settings.status_storage_topic) == [
        (
            b"status-topic-orders:connector-c",
            b'{"topic":{"name":"orders","connector":"c","task":1,"discoverTimestamp":1700000000000}}',
        )
    ]
    store.delete_topic("orders", "c")
    store.flush()
    store.refresh()
    assert store.topics("c") == []


# --- the config topic ---


def test_what_a_connector_is_to_do_is_read_by_another_worker(
    broker: BrokerProcess, settings: ConnectSettings, started: Started, writer: ConfigWriter
) -> None:
    writer.put_connector("c", {"a": "1"}, target=Target.STOPPED)
    writer.put_tasks("c", [{"n": "0"}, {"n": "1"}])
    writer.put_leader(Leader(url="http://w:1", worker_id="w:1"))
    writer.put_fencing("c", 2)
    writer.put_logger_level("connect", "DEBUG")
    other = ConfigStore(settings)
    levels: dict[str, str] = {}
    other.on_logger_level = levels.__setitem__
    started(other)
    assert other.desired("c") == DesiredConnector(
        name="c",
        config={"a": "1"},
        config_offset=1,
        target=Target.STOPPED,
        tasks=({"n": "0"}, {"n": "1"}),
        is_planned=True,
        decided_at=5,
        fenced_tasks=2,
    )
    assert other.leader == Leader(url="http://w:1", worker_id="w:1")
    assert levels == {"connect": "DEBUG"}
    assert [key for key, _ in consume(broker, settings.config_storage_topic)][:2] == [b"target-state-c", b"connector-c"]


def test_tasks_count_only_when_their_list_is_complete(
    broker: BrokerProcess, settings: ConnectSettings, started: Started, config_store: ConfigStore
) -> None:
    topic = settings.config_storage_topic
    produce(broker, topic, [(b"connector-c", b'{"properties":{}}'), (b"task-c-0", b'{"properties":{"n":"0"}}')])
    config_store.refresh()
    before = config_store.desired("c")
    produce(broker, topic, [(b"commit-c", b'{"tasks":1}')])
    config_store.refresh()
    after = config_store.desired("c")
    # Compaction has taken the record of the task that this belonged to.
    produce(broker, topic, [(b"task-c-1", b'{"properties":{"n":"1"}}'), (b"commit-c", b'{"tasks":2}')])
    config_store.refresh()
    inconsistent = config_store.desired("c")
    assert before is not None
    assert after is not None
    assert inconsistent is not None
    assert (before.tasks, before.is_planned) == ((), False)
    assert (after.tasks, after.is_planned) == (({"n": "0"},), True)
    assert (inconsistent.tasks, inconsistent.is_planned) == ((), False)


def test_a_removed_connector_leaves_only_what_must_be_fenced(config_store: ConfigStore, writer: ConfigWriter) -> None:
    writer.put_connector("c", {"a": "1"})
    writer.put_tasks("c", [{"n": "0"}])
    writer.put_fencing("c", 1)
    writer.put_target("c", Target.PAUSED)
    writer.remove("c")
    assert config_store.connectors() == []
    writer.put_connector("c", {"a": "2"})
    plan = config_store.desired("c")
    assert plan is not None
    assert (plan.target, plan.tasks, plan.is_planned, plan.fenced_tasks) == (Target.STARTED, (), False, 1)


def test_records_that_nobody_understands_hide_nothing(
    broker: BrokerProcess, settings: ConnectSettings, config_store: ConfigStore
) -> None:
    bad = [(b"connector-a", b"{"), (b"\xff", b"1"), (b"commit-a", b"[]"), (b"task-", b"{}"), (b"session-key", b"{}")]
    produce(broker, settings.config_storage_topic, [*bad, (b"connector-b", b'{"properties":{"a":"1"}}')])
    config_store.refresh()
    assert config_store.connectors() == ["b"]


def test_a_leader_that_was_replaced_can_write_no_more(
    settings: ConnectSettings, config_store: ConfigStore, writer: ConfigWriter
) -> None:
    writer.put_connector("c", {"a": "1"})
    successor = ConfigWriter(settings, config_store)
    successor.start()
    with pytest.raises(LeadershipLost):
        writer.put_connector("c", {"a": "2"})
    with pytest.raises(LeadershipLost):
        writer.remove("c")
    successor.put_target("c", Target.PAUSED)
    plan = config_store.desired("c")
    assert plan is not None
    assert (plan.config, plan.target) == ({"a": "1"}, Target.PAUSED)
    successor.close()


def test_a_config_topic_of_more_than_one_partition_is_refused(broker: BrokerProcess, settings: ConnectSettings) -> None:
    create_topic(broker, settings.config_storage_topic, partitions=2, configs={"cleanup.policy": "compact"})
    with pytest.raises(ConfigError, match=r"config\.storage\.topic.*single partition.*found 2 partitions"):
        ConfigStore(settings).start()


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
