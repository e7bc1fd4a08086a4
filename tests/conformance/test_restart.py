"""A broker that restarts under running clients: they notice, wait and go on."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.all import INSTALLED
from tests.support.clients.confluent import ConfluentClient, consumer_config, poll_records
from tests.support.clients.model import TIMEOUT_S, Client, Received, Sent, Transaction
from tests.support.group_member import GroupMember
from tests.support.kafka import start_class

HOW = pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with start_class()(tmp_path_factory.mktemp("restart")) as process:
        yield process


def in_order(records: list[Received]) -> list[Received]:
    return sorted(records, key=lambda record: (record.partition, record.offset))


@HOW
def test_everything_is_still_there(own_broker: BrokerProcess, name: str, kill: bool) -> None:
    create_topic(own_broker, name, partitions=2, configs={"retention.ms": "123456"})
    client = ConfluentClient()
    client.produce(own_broker.bootstrap, name, [Sent(key=b"k", value=b"%d" % n, partition=n % 2) for n in range(20)])
    client.transact(
        own_broker.bootstrap,
        name,
        name,
        [
            Transaction(records=[Sent(value=b"aborted", partition=0)], commit=False),
            Transaction(records=[Sent(value=b"committed", partition=0)], commit=True),
        ],
    )
    assert len(client.consume_group(own_broker.bootstrap, name, name, 21)) == 21
    before = in_order(client.consume(own_broker.bootstrap, name, 21, isolation="read_committed"))
    cluster = admin_client(own_broker).describe_cluster().result(TIMEOUT_S).cluster_id

    own_broker.restart(kill=kill)

    assert in_order(client.consume(own_broker.bootstrap, name, 21, isolation="read_committed")) == before
    assert admin_client(own_broker).describe_cluster().result(TIMEOUT_S).cluster_id == cluster
    consumer = Consumer(consumer_config(own_broker.bootstrap, name))
    try:
        committed = consumer.committed([TopicPartition(name, 0), TopicPartition(name, 1)], timeout=TIMEOUT_S)
        assert [partition.offset for partition in committed][1] == 10
    finally:
        consumer.close()


@HOW
def test_a_running_producer_and_consumer_go_on(own_broker: BrokerProcess, name: str, kill: bool) -> None:
    create_topic(own_broker, name)
    producer = Producer(
        {"bootstrap.servers": own_broker.bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 500}
    )
    consumer = Consumer(consumer_config(own_broker.bootstrap, name, **{"reconnect.backoff.max.ms": 500}))
    consumer.subscribe([name])
    stop = threading.Event()
    acknowledged: list[bytes] = []

    def delivered(error: object, message: Message) -> None:
        assert error is None
        acknowledged.append(message.value() or b"")

    def write() -> None:
        number = 0
        while not stop.wait(0.005):
            producer.produce(name, b"%d" % number, partition=0, on_delivery=delivered)
            producer.poll(0)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        eventually(lambda: len(acknowledged) > 50)
        own_broker.restart(kill=kill)
        so_far = len(acknowledged)
        eventually(lambda: len(acknowledged) > so_far + 50)
    finally:
        stop.set()
        writer.join()
    assert producer.flush(TIMEOUT_S) == 0
    try:
        values = [record.value for record in poll_records(consumer, len(acknowledged))]
    finally:
        consumer.close()
    assert values == acknowledged


def test_group_members_keep_their_partitions_over_a_restart(own_broker: BrokerProcess, name: str) -> None:
    create_topic(own_broker, name, partitions=4)
    config = {"session.timeout.ms": 10_000}
    with (
        GroupMember("confluent-kafka", own_broker.bootstrap, name, name, config=config) as first,
        GroupMember("confluent-kafka", own_broker.bootstrap, name, name, config=config) as second,
    ):
        eventually(lambda: (len(first.assignment), len(second.assignment)), lambda sizes: sizes == (2, 2))
        own_broker.restart()
        ConfluentClient().produce(own_broker.bootstrap, name, [Sent(value=b"%d" % n, partition=n) for n in range(4)])
        eventually(lambda: len(first.records) + len(second.records), lambda count: count == 4)


@HOW
def test_a_transaction_is_committed_though_the_broker_restarts_in_its_middle(
    own_broker: BrokerProcess, name: str, kill: bool
) -> None:
    create_topic(own_broker, name, partitions=3)
    producer = Producer(
        {
            "bootstrap.servers": own_broker.bootstrap,
            "transactional.id": name,
            "reconnect.backoff.max.ms": 500,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(name, b"before", partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    own_broker.restart(kill=kill)
    for partition in range(3):
        producer.produce(name, b"after", partition=partition)
    producer.commit_transaction(TIMEOUT_S)
    found = ConfluentClient().consume(own_broker.bootstrap, name, 6, isolation="read_committed")
    assert sorted((record.partition, record.value) for record in found) == [
        (partition, value) for partition in range(3) for value in (b"after", b"before")
    ]


def test_every_client_finds_its_records_after_a_restart(own_broker: BrokerProcess, name: str) -> None:
    def topic_of(client: Client) -> str:
        return f"{name}-{client.name}"

    for client in INSTALLED:
        client.produce(own_broker.bootstrap, topic_of(client), [Sent(value=client.name.encode(), partition=0)])
    own_broker.restart(kill=True)
    for client in INSTALLED:
        (record,) = client.consume(own_broker.bootstrap, topic_of(client), 1)
        assert record.value == client.name.encode()
