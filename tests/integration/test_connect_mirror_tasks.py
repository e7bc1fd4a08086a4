"""The mirror's connectors as a worker drives them: the standard suites on two real brokers, and what may go wrong."""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typing_extensions import override

from connect.api.errors import ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.testing.connector_suite import ConnectorSuite
from connect.testing.contexts import FakeSourceContext
from connect.testing.source_suite import SourceSuite
from connectors.mirror.checkpoint_source import MirrorCheckpointConnector, MirrorCheckpointTask
from connectors.mirror.config import MirrorCheckpointConfig, MirrorSourceConfig
from connectors.mirror.formats import Checkpoint, OffsetSync, read_checkpoint, write_checkpoint, write_sync
from connectors.mirror.heartbeat_source import MirrorHeartbeatConnector
from connectors.mirror.source import MirrorSourceConnector, MirrorSourceTask
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.mirror import Clusters, commit, committed, make, running_clusters, send


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with running_clusters(tmp_path_factory.mktemp("clusters")) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex[:10]}"


class TestMirrorSource(SourceSuite):
    """The standard suite, on two real brokers."""

    connector_class = MirrorSourceConnector
    batch_option = "source.consumer.max.poll.records"
    can_break = True

    @pytest.fixture(autouse=True)
    def other_side(self, clusters: Clusters, topic: str) -> None:
        self.clusters, self.topic = clusters, topic
        make(clusters.source, topic)

    @override
    def config(self) -> Mapping[str, str]:
        return self.clusters.config(
            topics=self.topic, **{"heartbeats.replication.enabled": "false", "consumer.poll.timeout.ms": "300"}
        )

    @override
    def produce(self, first: int, count: int) -> None:
        send(self.clusters.source, self.topic, range(first, first + count))

    @override
    def break_other_side(self) -> None:
        self.clusters.source.kill()

    @override
    def mend_other_side(self) -> None:
        self.clusters.source.start()


class TestMirrorCheckpoint(ConnectorSuite):
    """What all connectors must do."""

    connector_class = MirrorCheckpointConnector

    @pytest.fixture(autouse=True)
    def other_side(self, clusters: Clusters, topic: str) -> None:
        self.clusters, self.topic = clusters, topic
        make(clusters.source, topic)
        commit(clusters.source, topic, {0: 0})

    @override
    def config(self) -> Mapping[str, str]:
        return self.clusters.config(groups=self.topic)


class TestMirrorHeartbeat(ConnectorSuite):
    """The same."""

    connector_class = MirrorHeartbeatConnector

    @pytest.fixture(autouse=True)
    def other_side(self, clusters: Clusters) -> None:
        self.clusters = clusters

    @override
    def config(self) -> Mapping[str, str]:
        return self.clusters.config()


# --- what may go wrong ---


def task_of(
    clusters: Clusters, topic: str, changes: Mapping[str, str] | None = None, *, known: int | None = None
) -> MirrorSourceTask:
    """A started task of partition 0 that has read up to an offset before."""
    partition = {"cluster": "us", "topic": topic, "partition": 0}
    context = FakeSourceContext([] if known is None else [(partition, {"offset": known})])
    config = clusters.config(
        **{"task.assigned.partitions": f"{topic}-0", "consumer.poll.timeout.ms": "300", **(changes or {})}
    )
    task = MirrorSourceTask(MirrorSourceConfig.parse(config), context)
    task.start()
    return task


def polled(task: MirrorSourceTask, count: int) -> list[SourceRecord]:
    """So many records."""
    found: list[SourceRecord] = []

    def count_after_poll() -> int:
        found.extend(task.poll())
        return len(found)

    eventually(count_after_poll, lambda number: number >= count)
    return found


def offsets_in(records: Sequence[SourceRecord]) -> list[Any]:
    return [record.source_offset["offset"] for record in records]


def test_records_that_were_deleted_are_passed_over(clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    send(clusters.source, topic, range(20))
    (deleted,) = admin_client(clusters.source).delete_records([TopicPartition(topic, 0, 10)]).values()
    deleted.result(60)
    task = task_of(clusters, topic, known=3)
    assert offsets_in(polled(task, 10)) == list(range(10, 20))
    task.stop()


def test_a_topic_that_is_new_under_the_same_name_is_read_from_its_beginning(clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    send(clusters.source, topic, range(5))
    task = task_of(clusters, topic, known=1000)
    assert offsets_in(polled(task, 5)) == [0, 1, 2, 3, 4]
    task.stop()


def test_who_wants_no_gaps_gets_an_error(clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    task = task_of(clusters, topic, {"source.consumer.auto.offset.reset": "none"}, known=1000)
    with pytest.raises(ConnectError, match="auto.offset.reset is none"):
        polled(task, 1)
    task.stop()


def test_what_is_not_committed_is_not_mirrored_unless_it_is_wanted(clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    aborted = Producer({"bootstrap.servers": clusters.source.bootstrap, "transactional.id": topic})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    aborted.produce(topic, b"never")
    aborted.flush(30)
    aborted.abort_transaction(30)
    send(clusters.source, topic, range(3))
    for level, count in (("read_committed", 3), ("read_uncommitted", 4)):
        task = task_of(clusters, topic, {"source.consumer.isolation.level": level})
        assert len(polled(task, count)) == count
        task.stop()


def checkpoint_task(clusters: Clusters, topic: str, **changes: str) -> MirrorCheckpointTask:
    """A started task of one group, which has the name of its topic."""
    assigned = {"task.assigned.groups": json.dumps([topic]), "sync.group.offsets.enabled": "true"}
    config = clusters.config(topics=topic, **assigned, **changes)
    task = MirrorCheckpointTask(MirrorCheckpointConfig.parse(config), FakeSourceContext())
    task.start()
    return task


def test_checkpoints_do_not_go_back_after_a_restart(clusters: Clusters, topic: str) -> None:
    alias = f"a{topic}"
    make(clusters.source, topic)
    make(clusters.target, f"{alias}.{topic}")
    send(clusters.target, f"{alias}.{topic}", range(20))
    commit(clusters.source, topic, {0: 9})
    place = f"{alias}.{topic}", 0
    ours = {"source.cluster.alias": alias, "target.cluster.alias": f"b{topic}"}
    write(clusters.source, f"mm2-offset-syncs.b{topic}.internal", *write_sync(OffsetSync((topic, 0), 2, 2)))
    first = checkpoint_task(clusters, topic, **ours)
    (record,) = first.poll()
    assert read_checkpoint(record.key, record.value) == Checkpoint(topic, place, 9, 3)
    # Before the restart more was known than is left of the syncs.
    write(clusters.target, f"{alias}.checkpoints.internal", *write_checkpoint(Checkpoint(topic, place, 8, 8)))
    second = checkpoint_task(clusters, topic, **ours)
    assert second.poll() == []
    assert committed(clusters.target, place[0], topic)[0] == 8
    first.stop()
    second.stop()


def write(broker: BrokerProcess, topic: str, key: bytes, value: bytes) -> None:
    """One record of a topic that is made for it."""
    create_topic(broker, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value, key, 0)
    assert producer.flush(30) == 0


def test_groups_with_members_in_the_target_are_left_alone(clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    make(clusters.target, f"us.{topic}")
    send(clusters.source, topic, range(10))
    send(clusters.target, f"us.{topic}", range(10))
    commit(clusters.source, topic, {0: 10})
    source = task_of(clusters, topic)
    source.delivered(polled(source, 10), range(10))
    source.stop()
    member = Consumer({"bootstrap.servers": clusters.target.bootstrap, "group.id": topic, "enable.auto.commit": False})
    member.subscribe([f"us.{topic}"])
    eventually(lambda: member.poll(0.1) is None and member.assignment())
    task = checkpoint_task(clusters, topic)
    (record,) = task.poll()
    checkpoint = read_checkpoint(record.key, record.value)
    assert checkpoint is not None
    assert checkpoint[:4] == (topic, (f"us.{topic}", 0), 10, 10)
    assert committed(clusters.target, f"us.{topic}", topic)[0] < 0
    member.close()
    again = checkpoint_task(clusters, topic)
    again.poll()
    assert committed(clusters.target, f"us.{topic}", topic)[0] == 10
    task.stop()
    again.stop()


def test_a_source_that_is_away_is_told_as_an_error_that_passes(clusters: Clusters, topic: str) -> None:
    make(clusters.source, topic)
    task = task_of(clusters, topic)
    polled(task, 0)
    clusters.source.kill()
    try:
        with pytest.raises(RetriableError, match="the source cluster does not answer"):
            polled(task, 1)
    finally:
        clusters.source.start()
    send(clusters.source, topic, range(3))
    found: list[SourceRecord] = []
    eventually(lambda: took(task, found), lambda count: count == 3)
    task.stop()


def took(task: MirrorSourceTask, found: list[SourceRecord]) -> int:
    """How many records there are after one more poll, which may fail."""
    with suppress(RetriableError):
        found.extend(task.poll())
    return len(found)
