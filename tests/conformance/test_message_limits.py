"""Records that are too large, too old, too new, or stamped by the broker."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.cimpl import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from kafka import KafkaProducer
from kafka.errors import KafkaError as PureKafkaError
from kafka.errors import MessageSizeTooLargeError as PureMessageSizeTooLargeError

from core_broker.service.clock import SystemClock
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.clients.all import INSTALLED
from tests.support.clients.confluent import ConfluentClient, consumer_config
from tests.support.clients.model import TIMEOUT_S, Sent

SMALL = {"max.message.bytes": "2000"}
BIG = b"x" * 5_000


def send(broker: BrokerProcess, topic: str, record: Sent) -> int | None:
    """Send one record and return the error code of its delivery."""
    try:
        ConfluentClient().produce(broker.bootstrap, topic, [record])
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return None


def test_a_message_that_is_too_large_is_refused_to_confluent(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=SMALL)
    assert send(broker, name, Sent(value=BIG, partition=0)) == KafkaError.MSG_SIZE_TOO_LARGE
    assert send(broker, name, Sent(value=b"small", partition=0)) is None
    (record,) = ConfluentClient().consume(broker.bootstrap, name, 1)
    assert (record.offset, record.value) == (0, b"small")


def test_a_message_that_is_too_large_is_refused_to_aiokafka(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=SMALL)

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        await producer.start()
        try:
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(name, BIG)
        finally:
            await producer.stop()

    asyncio.run(run())


def test_a_message_that_is_too_large_is_refused_to_kafka_python(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=SMALL)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, retries=0)
    try:
        with pytest.raises((PureMessageSizeTooLargeError, PureKafkaError)):
            producer.send(name, BIG).get(timeout=TIMEOUT_S)
    finally:
        producer.close(timeout=TIMEOUT_S)


def outcomes(broker: BrokerProcess, topic: str, records: list[Sent], codec: str) -> list[int | None]:
    """Send records in one batch and return the error code of each."""
    codes: list[int | None] = [None] * len(records)

    def noting(number: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, _: Message) -> None:
            codes[number] = None if error is None else error.code()

        return note

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5_000, "compression.type": codec})
    # Records that wait for the topic's partitions are queued one by one later on, and the first may be sent alone.
    producer.list_topics(topic, timeout=TIMEOUT_S)
    for number, record in enumerate(records):
        timestamp_ms = record.timestamp_ms or 0
        producer.produce(
            topic, record.value, record.key, partition=0, timestamp=timestamp_ms, on_delivery=noting(number)
        )
    assert producer.flush(TIMEOUT_S) == 0
    return codes


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_confluent_tells_records_without_a_key_from_the_others_of_their_batch(
    broker: BrokerProcess, name: str, codec: str
) -> None:
    create_topic(broker, name, configs={"cleanup.policy": "compact"})
    records = [Sent(key=key, value=b"v") for key in (b"a", None, b"b", None)]
    bad, other = KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD
    assert outcomes(broker, name, records, codec) == [other, bad, other, bad]
    assert outcomes(broker, name, [records[0], records[2]], codec) == [None, None]


@pytest.mark.parametrize("distance_ms", [-100_000, 100_000])
def test_confluent_tells_records_of_another_time_from_the_others_of_their_batch(
    broker: BrokerProcess, name: str, distance_ms: int
) -> None:
    limits = {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"}
    create_topic(broker, name, configs=limits)
    now_ms = SystemClock().now_ms()
    records = [Sent(value=b"v", timestamp_ms=now_ms + distance) for distance in (0, distance_ms, 0, distance_ms)]
    bad, other = KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD
    assert outcomes(broker, name, records, "none") == [other, bad, other, bad]


def test_what_counts_is_the_compressed_size(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=SMALL)
    ConfluentClient().produce(broker.bootstrap, name, [Sent(value=BIG, partition=0)], codec="gzip")
    assert ConfluentClient().consume(broker.bootstrap, name, 1)[0].value == BIG


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_log_append_time_is_what_readers_see(broker: BrokerProcess, name: str, codec: str) -> None:
    create_topic(broker, name, configs={"message.timestamp.type": "LogAppendTime"})
    before = SystemClock().now_ms()
    records = [Sent(value=b"%d" % n, timestamp_ms=1_000, partition=0) for n in range(3)]
    ConfluentClient().produce(broker.bootstrap, name, records, codec=codec)
    after = SystemClock().now_ms()
    for reader in INSTALLED:
        for record in reader.consume(broker.bootstrap, name, 3):
            assert before <= record.timestamp_ms <= after, reader.name


def test_the_kind_of_a_timestamp_is_told(broker: BrokerProcess, name: str) -> None:
    for kind, expected in (("CreateTime", TIMESTAMP_CREATE_TIME), ("LogAppendTime", TIMESTAMP_LOG_APPEND_TIME)):
        topic = f"{name}-{kind}"
        create_topic(broker, topic, configs={"message.timestamp.type": kind})
        ConfluentClient().produce(broker.bootstrap, topic, [Sent(value=b"v", partition=0)])
        consumer = Consumer(consumer_config(broker.bootstrap, name))
        consumer.assign([TopicPartition(topic, 0, 0)])
        try:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.timestamp()[0] == expected
        finally:
            consumer.close()


def test_the_producer_learns_the_time_of_the_append(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"message.timestamp.type": "LogAppendTime"})
    before = SystemClock().now_ms()
    told: list[tuple[int, int]] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(name, b"v", timestamp=1_000, on_delivery=lambda _, message: told.append(message.timestamp()))
    assert producer.flush(TIMEOUT_S) == 0
    assert told[0][0] == TIMESTAMP_LOG_APPEND_TIME
    assert told[0][1] >= before


@pytest.mark.parametrize(
    "configs,timestamp_ms",
    [
        ({"message.timestamp.before.max.ms": "60000"}, 1_000),
        ({"message.timestamp.after.max.ms": "60000"}, 32_503_680_000_000),
    ],
)
def test_timestamps_too_far_from_now_are_refused(
    broker: BrokerProcess, name: str, configs: dict[str, str], timestamp_ms: int
) -> None:
    create_topic(broker, name, configs=configs)
    assert send(broker, name, Sent(value=b"v", timestamp_ms=timestamp_ms, partition=0)) == KafkaError.INVALID_TIMESTAMP
    assert send(broker, name, Sent(value=b"v", partition=0)) is None


def test_a_compacted_topic_refuses_records_without_a_key(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"cleanup.policy": "compact"})
    assert send(broker, name, Sent(value=b"v", partition=0)) == KafkaError.INVALID_RECORD
    assert send(broker, name, Sent(key=b"k", value=b"v", partition=0)) is None


def test_the_broker_compresses_when_the_topic_says_so(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"compression.type": "zstd"})
    records = [Sent(value=b"abcdefgh" * 50, partition=0) for _ in range(100)]
    ConfluentClient().produce(broker.bootstrap, name, records)
    assert len(ConfluentClient().consume(broker.bootstrap, name, 100)) == 100
    assert 0 < broker.stored_bytes(name) < 10_000


def test_a_waiting_fetch_is_answered_when_records_come(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    longer_than_the_test_waits = {"fetch.wait.max.ms": 50_000}
    consumer = Consumer(consumer_config(broker.bootstrap, name, **longer_than_the_test_waits))
    consumer.assign([TopicPartition(name, 0, 0)])
    try:
        assert consumer.poll(0.5) is None
        ConfluentClient().produce(broker.bootstrap, name, [Sent(value=b"awaited", partition=0)])
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"awaited"
    finally:
        consumer.close()
