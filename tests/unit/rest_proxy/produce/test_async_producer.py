import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from core_broker.client.errors import ClientError, NotFound, Rejected, Retriable, Unreachable
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings, Configuration
from rest_proxy.produce.async_producer import AsyncProducer, make
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes

# Topics are created by the first record: a slow machine may take its time.
IDEMPOTENT: Configuration = {"enable.idempotence": True, "topic.metadata.propagation.max.ms": 60_000}


def settings(bootstrap: str) -> ClientSettings:
    return ClientSettings(bootstrap_servers=bootstrap, properties={"log_level": "0"})


@pytest.fixture
async def producer(broker: BrokerProcess) -> AsyncIterator[AsyncProducer]:
    made = AsyncProducer(make(settings(broker.bootstrap), IDEMPOTENT))
    yield made
    await made.close(5)


async def test_each_record_is_told_where_it_went_in_the_order_they_were_given(
    producer: AsyncProducer, broker: BrokerProcess, name: str
) -> None:
    records = [OutgoingRecord(topic=name, value=b"%d" % number, key=b"k") for number in range(500)]
    outcomes = await producer.send_all(records)
    assert [type(outcome) for outcome in outcomes] == [Delivery] * 500
    assert [outcome.offset for outcome in outcomes if isinstance(outcome, Delivery)] == list(range(500))
    assert values(broker, name, 500) == [b"%d" % number for number in range(500)]


async def test_a_record_that_cannot_be_sent_leaves_the_others_alone(producer: AsyncProducer, name: str) -> None:
    await producer.send_all([OutgoingRecord(topic=name, value=b"first")])
    good = OutgoingRecord(topic=name, value=b"x")
    outcomes = await producer.send_all(
        [good, OutgoingRecord(topic=name, value=b"x", partition=99), good, OutgoingRecord(topic="a/b", value=b"x")]
    )
    assert [type(outcome) for outcome in outcomes] == [Delivery, NotFound, Delivery, Rejected]


async def test_a_name_that_no_topic_may_have_is_wrong_each_time(producer: AsyncProducer) -> None:
    forbidden = OutgoingRecord(topic="a/b", value=b"x")
    outcomes = [(await producer.send_all([forbidden]))[0] for _ in range(3)]
    assert [type(outcome) for outcome in outcomes] == [Rejected] * 3


async def test_headers_times_and_tombstones_arrive(producer: AsyncProducer, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.ms": "-1"})
    headers = (("a", b"\x00\xff"), ("a", None), ("é", b""))
    record = OutgoingRecord(topic=name, value=None, key=b"k", headers=headers, timestamp_ms=1_600_000_000_000)
    (outcome,) = await producer.send_all([record])
    assert isinstance(outcome, Delivery)
    assert outcome.timestamp_ms == 1_600_000_000_000
    reader = assigned(broker, name)
    message = reader.poll(60)
    assert message is not None
    assert (message.key(), message.value(), message.headers()) == (b"k", None, list(headers))
    reader.close()


async def test_what_is_in_flight_is_counted_and_comes_to_nothing(producer: AsyncProducer, name: str) -> None:
    future = producer.send_all([OutgoingRecord(topic=name, value=b"four", key=b"two")] * 3)
    assert (producer.records_in_flight, producer.bytes_in_flight) == (3, 21)
    await future
    assert (producer.records_in_flight, producer.bytes_in_flight) == (0, 0)


async def test_nothing_at_all_is_sent_at_once(producer: AsyncProducer) -> None:
    assert await producer.send_all([]) == []


async def test_a_full_queue_refuses_what_is_too_much_and_sends_the_rest(broker: BrokerProcess, name: str) -> None:
    small = AsyncProducer(make(settings(broker.bootstrap), {**IDEMPOTENT, "queue.buffering.max.messages": 10}))
    outcomes = await small.send_all([OutgoingRecord(topic=name, value=b"x")] * 30)
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds.count(Delivery) + kinds.count(Retriable) == 30
    assert kinds.count(Delivery) >= 10
    assert kinds.count(Retriable) >= 1
    await small.close(5)


async def test_without_acknowledgement_nobody_knows_the_offset(broker: BrokerProcess, name: str) -> None:
    careless = AsyncProducer(make(settings(broker.bootstrap), {"acks": "0"}))
    (outcome,) = await careless.send_all([OutgoingRecord(topic=name, value=b"x")])
    assert isinstance(outcome, Delivery)
    assert outcome.offset == -1
    await careless.close(5)


async def test_records_that_were_never_sent_can_be_dropped_when_the_cluster_is_gone() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        lonely = AsyncProducer(make(settings(f"127.0.0.1:{taken.getsockname()[1]}"), IDEMPOTENT))
        future = lonely.send_all([OutgoingRecord(topic="t", value=b"x")] * 2)
        async with asyncio.timeout(30):
            await lonely.down()
            states = [lonely.is_down]
            lonely.drop_unsent()
            outcomes: list[Delivery | ClientError] = await future
        assert [type(outcome) for outcome in outcomes] == [Unreachable, Unreachable]
        lonely.trust()
        assert [*states, lonely.is_down] == [True, False]
        await lonely.close(0)


def assigned(broker: BrokerProcess, topic: str) -> Consumer:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    reader.assign([TopicPartition(topic, 0, 0)])
    return reader


def values(broker: BrokerProcess, topic: str, count: int) -> list[bytes | None]:
    reader = assigned(broker, topic)
    messages = reader.consume(count, 20)
    reader.close()
    return [message.value() for message in messages]
