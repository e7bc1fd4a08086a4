"""Transactions: all of their records are seen, or none."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.all import INSTALLED
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.model import TIMEOUT_S, Client, Sent, Transaction


def records(label: str, count: int = 10, partitions: int = 3) -> list[Sent]:
    return [Sent(key=b"k%d" % n, value=f"{label}-{n}".encode(), partition=n % partitions) for n in range(count)]


def labels(client: Client, broker: BrokerProcess, topic: str, count: int, isolation: str) -> dict[str, int]:
    """How many records of each transaction a reader sees."""
    seen: dict[str, int] = {}
    for record in client.consume(broker.bootstrap, topic, count, isolation=isolation):
        label = (record.value or b"").decode().rpartition("-")[0]
        seen[label] = seen.get(label, 0) + 1
    return seen


def test_committed_records_are_seen_and_aborted_ones_are_not(broker: BrokerProcess, name: str, client: Client) -> None:
    create_topic(broker, name, partitions=3)
    client.transact(
        broker.bootstrap,
        name,
        name,
        [
            Transaction(records=records("a"), commit=True),
            Transaction(records=records("b"), commit=False),
            Transaction(records=records("c"), commit=True),
        ],
    )
    client.produce(broker.bootstrap, name, records("end", 3))
    for reader in INSTALLED:
        assert labels(reader, broker, name, 23, "read_committed") == {"a": 10, "c": 10, "end": 3}, reader.name


def test_read_uncommitted_sees_aborted_records_too(broker: BrokerProcess, name: str, client: Client) -> None:
    create_topic(broker, name, partitions=3)
    ConfluentClient().transact(
        broker.bootstrap,
        name,
        name,
        [Transaction(records=records("a"), commit=False), Transaction(records=records("b"), commit=True)],
    )
    assert labels(client, broker, name, 20, "read_uncommitted") == {"a": 10, "b": 10}


def test_an_open_transaction_holds_back_committed_readers(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    producer = transactional_producer(broker, name)
    producer.begin_transaction()
    producer.produce(name, b"open-0", partition=0)
    producer.flush(TIMEOUT_S)
    plain = ConfluentClient()
    plain.produce(broker.bootstrap, name, [Sent(value=b"plain-0", partition=0)])
    assert labels(plain, broker, name, 2, "read_uncommitted") == {"open": 1, "plain": 1}
    assert plain.consume(broker.bootstrap, name, 0, isolation="read_committed") == []
    consumer_sees_nothing(broker, name)
    producer.commit_transaction(TIMEOUT_S)
    assert labels(plain, broker, name, 2, "read_committed") == {"open": 1, "plain": 1}


def consumer_sees_nothing(broker: BrokerProcess, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        assert consumer.poll(1.0) is None
        last_stable_offset = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)[1]
        assert last_stable_offset == 0
    finally:
        consumer.close()


def transactional_producer(broker: BrokerProcess, transactional_id: str, **extra: object) -> Producer:
    config = {"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, **extra}
    producer = Producer(config)
    producer.init_transactions(TIMEOUT_S)
    return producer


def test_a_second_producer_of_the_same_id_fences_the_first(broker: BrokerProcess, name: str) -> None:
    zombie = transactional_producer(broker, name)
    zombie.begin_transaction()
    zombie.produce(name, b"zombie-0", partition=0)
    zombie.flush(TIMEOUT_S)
    successor = transactional_producer(broker, name)
    with pytest.raises(KafkaException) as failure:
        zombie.produce(name, b"zombie-1", partition=0)
        zombie.commit_transaction(TIMEOUT_S)
    assert failure.value.args[0].code() in {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError._STATE}
    successor.begin_transaction()
    successor.produce(name, b"successor-0", partition=0)
    successor.commit_transaction(TIMEOUT_S)
    assert labels(ConfluentClient(), broker, name, 1, "read_committed") == {"successor": 1}


@pytest.mark.parametrize("library", ["aiokafka", "kafka-python"])
def test_a_producer_of_another_library_fences_the_first(broker: BrokerProcess, name: str, library: str) -> None:
    zombie = transactional_producer(broker, name)
    zombie.begin_transaction()
    zombie.produce(name, b"zombie-0", partition=0)
    zombie.flush(TIMEOUT_S)
    (successor,) = (client for client in INSTALLED if client.name == library)
    successor.transact(
        broker.bootstrap, name, name, [Transaction(records=[Sent(value=b"successor-0", partition=0)], commit=True)]
    )
    with pytest.raises(KafkaException):
        zombie.commit_transaction(TIMEOUT_S)
    assert labels(ConfluentClient(), broker, name, 1, "read_committed") == {"successor": 1}


def test_a_transaction_that_takes_too_long_is_aborted(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    slow = transactional_producer(broker, name, **{"transaction.timeout.ms": 1000})
    slow.begin_transaction()
    slow.produce(name, b"late-0", partition=0)
    slow.flush(TIMEOUT_S)
    reader = ConfluentClient()
    reader.produce(broker.bootstrap, name, [Sent(value=b"plain-0", partition=0)])
    assert labels(reader, broker, name, 1, "read_committed") == {"plain": 1}
    with pytest.raises(KafkaException):
        slow.commit_transaction(TIMEOUT_S)


def test_an_empty_transaction_can_be_committed_and_aborted(broker: BrokerProcess, name: str) -> None:
    producer = transactional_producer(broker, name)
    producer.begin_transaction()
    producer.commit_transaction(TIMEOUT_S)
    producer.begin_transaction()
    producer.abort_transaction(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(name, b"x-0", partition=0)
    producer.commit_transaction(TIMEOUT_S)
    assert labels(ConfluentClient(), broker, name, 1, "read_committed") == {"x": 1}


def test_many_transactions_in_a_row(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=4)
    producer = transactional_producer(broker, name)
    for number in range(60):
        producer.begin_transaction()
        for partition in range(4):
            producer.produce(name, b"%s-%d" % (b"odd" if number % 2 else b"even", number), partition=partition)
        producer.abort_transaction(TIMEOUT_S) if number % 2 else producer.commit_transaction(TIMEOUT_S)
    assert labels(ConfluentClient(), broker, name, 120, "read_committed") == {"even": 120}


def test_a_transaction_spans_topics(broker: BrokerProcess, name: str) -> None:
    topics = [f"{name}-{letter}" for letter in "abc"]
    producer = transactional_producer(broker, name)
    for commit in (False, True):
        producer.begin_transaction()
        for topic in topics:
            producer.produce(topic, b"%s-0" % (b"yes" if commit else b"no"), partition=0)
        producer.commit_transaction(TIMEOUT_S) if commit else producer.abort_transaction(TIMEOUT_S)
    for topic in topics:
        assert eventually(lambda: labels(ConfluentClient(), broker, topic, 1, "read_committed")) == {"yes": 1}  # noqa: B023
