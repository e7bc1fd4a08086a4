import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from core_broker.client.admin import Admin
from core_broker.client.errors import Fatal
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings
from core_broker.client.transactional_producer import Stuck, TransactionalProducer, call_within
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes

Open = Callable[[], TransactionalProducer]


@pytest.fixture
def producers(cluster: ClientSettings, name: str) -> Iterator[Open]:
    """Makes producers of one transactional id, ready."""
    made: list[TransactionalProducer] = []

    def open_one() -> TransactionalProducer:
        producer = TransactionalProducer(cluster, transactional_id=name)
        made.append(producer)
        producer.init()
        return producer

    yield open_one
    for producer in made:
        producer.close()


def committed_of(cluster: ClientSettings, group: str, topic: str) -> list[int]:
    """What a foreign client finds committed for the first two partitions; -1001 for nothing."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0}
    consumer = confluent_kafka.Consumer(settings)
    try:
        places = [confluent_kafka.TopicPartition(topic, number) for number in range(2)]
        return [item.offset for item in consumer.committed(places, timeout=60)]
    finally:
        consumer.close()


def test_offsets_become_visible_with_the_commit(
    producers: Open, cluster: ClientSettings, topic: str, name: str
) -> None:
    producer = producers()
    producer.begin()
    producer.send(OutgoingRecord(topic=topic, value=b"a", partition=0))
    producer.send_offsets(name, {(topic, 0): 7, (topic, 1): 9})
    assert Admin(cluster).group_offsets(name) == {}
    producer.commit()
    assert Admin(cluster).group_offsets(name) == {(topic, 0): 7, (topic, 1): 9}
    assert committed_of(cluster, name, topic) == [7, 9]


def test_offsets_of_an_aborted_transaction_are_never_visible(
    producers: Open, cluster: ClientSettings, topic: str, name: str
) -> None:
    producer = producers()
    producer.begin()
    producer.send_offsets(name, {(topic, 0): 7})
    producer.commit()
    producer.begin()
    producer.send_offsets(name, {(topic, 0): 8, (topic, 1): 1})
    producer.abort()
    assert Admin(cluster).group_offsets(name) == {(topic, 0): 7}
    assert committed_of(cluster, name, topic) == [7, -1001]


def test_what_is_read_after_init_is_settled_and_the_former_owner_can_change_nothing(
    producers: Open, cluster: ClientSettings, topic: str, name: str
) -> None:
    former = producers()
    former.begin()
    former.send_offsets(name, {(topic, 0): 7})
    latter = producers()
    assert Admin(cluster).group_offsets(name) == {}
    with pytest.raises(Fatal):
        former.commit()
    latter.begin()
    latter.send_offsets(name, {(topic, 0): 3})
    latter.commit()
    assert committed_of(cluster, name, topic) == [3, -1001]


def test_offsets_of_two_groups_are_in_one_transaction(
    producers: Open, cluster: ClientSettings, topic: str, name: str
) -> None:
    producer = producers()
    producer.begin()
    producer.send_offsets(f"{name}-a", {(topic, 0): 1})
    producer.send_offsets(f"{name}-b", {(topic, 0): 2})
    producer.commit()
    found = [Admin(cluster).group_offsets(f"{name}-{group}") for group in "ab"]
    assert found == [{(topic, 0): 1}, {(topic, 0): 2}]


def test_a_group_that_is_committed_to_has_no_members_so_that_its_offsets_can_be_changed(
    producers: Open, cluster: ClientSettings, topic: str, name: str
) -> None:
    producer = producers()
    producer.begin()
    producer.send_offsets(name, {(topic, 0): 7})
    producer.commit()
    admin = Admin(cluster)
    admin.set_group_offsets(name, {(topic, 0): 2})
    assert admin.group_offsets(name) == {(topic, 0): 2}
    assert admin.delete_groups([name]) == {name: None}


def test_offsets_are_sent_again_once_a_broker_that_was_killed_is_back(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        create_topic(broker, name)
        cluster = ClientSettings(bootstrap_servers=broker.bootstrap)
        producer = TransactionalProducer(cluster, transactional_id=name)
        producer.init()
        for offset in (1, 2):
            producer.begin()
            producer.send_offsets(name, {(name, 0): offset})
            producer.commit()
            broker.restart(kill=True)
        assert Admin(cluster).group_offsets(name) == {(name, 0): 2}
        producer.close()


def test_a_call_that_never_returns_is_given_up() -> None:
    forever = threading.Event()

    def hang() -> None:
        forever.wait(60)

    with pytest.raises(Stuck, match="within 0.05 s"):
        call_within(0.05, hang)
    forever.set()


def test_what_a_call_raises_is_raised_to_its_caller() -> None:
    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))

    call_within(60, lambda: None)
    with pytest.raises(KafkaException):
        call_within(60, fail)
