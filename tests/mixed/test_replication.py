"""Records on brokers of both kinds: each kind leads, follows and coordinates for the other."""

from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.clients.model import TIMEOUT_S
from tests.support.mixed_cluster import MixedCluster, needs_kafka

pytestmark = needs_kafka

ASSIGNMENTS = {"led-by-1": [1, 4, 5], "led-by-4": [4, 1, 5], "led-by-5": [5, 2, 4], "led-by-2": [2, 5, 3]}
"""Topics with replicas on both kinds; the first replica leads."""
RECORDS = 1000


@pytest.fixture(scope="module")
def topics(mixed: MixedCluster) -> list[str]:
    """Topics of one partition each, with their leaders where they should be."""
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap})
    created = admin.create_topics([NewTopic(name, 1, replica_assignment=[on]) for name, on in ASSIGNMENTS.items()])
    for future in created.values():
        future.result(TIMEOUT_S)
    eventually(lambda: leaders(admin), lambda found: found == {name: on[0] for name, on in ASSIGNMENTS.items()})
    return list(ASSIGNMENTS)


def leaders(admin: AdminClient) -> dict[str, int]:
    described = admin.describe_topics(TopicCollection(list(ASSIGNMENTS)))
    found = {name: future.result(TIMEOUT_S).partitions[0].leader for name, future in described.items()}
    return {name: leader.id if leader else -1 for name, leader in found.items()}


def in_sync(admin: AdminClient) -> dict[str, int]:
    described = admin.describe_topics(TopicCollection(list(ASSIGNMENTS)))
    return {name: len(future.result(TIMEOUT_S).partitions[0].isr) for name, future in described.items()}


def produce(producer: Producer, topics: list[str], values: list[str]) -> None:
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for number, value in enumerate(values):
        producer.produce(topics[number % len(topics)], value, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_producers_groups_and_transactions_span_both_kinds(
    mixed: MixedCluster, topics: list[str], protocol: str
) -> None:
    settings = {"bootstrap.servers": mixed.bootstrap}
    committed, aborted = ([f"{protocol} {fate} {number}" for number in range(RECORDS)] for fate in ("good", "bad"))
    writer = Producer({**settings, "transactional.id": f"writer-{protocol}", "linger.ms": 5})
    writer.init_transactions(TIMEOUT_S)
    for values, finish in ((aborted, writer.abort_transaction), (committed, writer.commit_transaction)):
        writer.begin_transaction()
        produce(writer, topics, values)
        finish(TIMEOUT_S)
    reader = Consumer(
        {
            **settings,
            "group.id": f"readers-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    reader.subscribe(topics)
    found: list[str] = []

    def read() -> int:
        values = [(message.value() or b"").decode() for message in reader.consume(RECORDS, 1) if not message.error()]
        found.extend(value for value in values if value.startswith(protocol))
        return len(found)

    eventually(read, lambda count: count >= RECORDS, pause_s=0)
    reader.commit(asynchronous=False)
    reader.close()
    assert sorted(found) == sorted(committed)


def test_replicas_of_both_kinds_have_equal_bytes(mixed: MixedCluster, topics: list[str]) -> None:
    producer = Producer({"bootstrap.servers": mixed.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    produce(producer, topics, [f"equal {number}" for number in range(RECORDS)])
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap})
    eventually(lambda: in_sync(admin), lambda found: set(found.values()) == {3})
    for topic, replicas in ASSIGNMENTS.items():
        eventually(partial(mixed.stored, topic), lambda found: len(set(found.values())) == 1)
        assert set(mixed.stored(topic)) == set(replicas)
