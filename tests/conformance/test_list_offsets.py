"""Offsets by time and by name, and records deleted below an offset."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as PureTopicPartition

from core_broker.service.clock import SystemClock
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, consumer_config
from tests.support.clients.kcat import KCAT, run
from tests.support.clients.model import TIMEOUT_S, Sent

T0 = SystemClock().now_ms() - 3_600_000
"""An hour ago: what is older than a week would be deleted by the retention of its topic."""
TIMES = [T0, T0 + 10, T0 + 20, T0 + 50, T0 + 40, T0 + 60]
"""Offset 3 holds a later time than offset 4."""
LOOKUPS = [(T0 - 5, 0), (T0, 0), (T0 + 1, 1), (T0 + 20, 2), (T0 + 21, 3), (T0 + 51, 5), (T0 + 60, 5)]


@pytest.fixture(params=["none", "zstd"])
def filled(request: pytest.FixtureRequest, broker: BrokerProcess, name: str) -> str:
    create_topic(broker, name)
    records = [Sent(value=b"%d" % n, timestamp_ms=time, partition=0) for n, time in enumerate(TIMES)]
    ConfluentClient().produce(broker.bootstrap, name, records[:3], codec=request.param)
    ConfluentClient().produce(broker.bootstrap, name, records[3:], codec=request.param)
    return name


def ask(broker: BrokerProcess, topic: str, spec: OffsetSpec, **options: object) -> tuple[int, int]:
    """(offset, timestamp) that the admin client is told."""
    (found,) = admin_client(broker).list_offsets({TopicPartition(topic, 0): spec}, **options).values()
    result = found.result(TIMEOUT_S)
    return result.offset, result.timestamp


def test_earliest_latest_and_greatest_time(broker: BrokerProcess, filled: str) -> None:
    assert ask(broker, filled, OffsetSpec.earliest())[0] == 0
    assert ask(broker, filled, OffsetSpec.latest())[0] == 6
    assert ask(broker, filled, OffsetSpec.max_timestamp()) == (5, T0 + 60)


def test_confluent_finds_offsets_for_times(broker: BrokerProcess, filled: str) -> None:
    for time, offset in LOOKUPS:
        assert ask(broker, filled, OffsetSpec.for_timestamp(time))[0] == offset, time - T0
    assert ask(broker, filled, OffsetSpec.for_timestamp(T0 + 61))[0] == -1
    consumer = Consumer(consumer_config(broker.bootstrap, filled))
    try:
        for time, offset in LOOKUPS:
            (found,) = consumer.offsets_for_times([TopicPartition(filled, 0, time)], timeout=TIMEOUT_S)
            assert found.offset == offset
        assert consumer.get_watermark_offsets(TopicPartition(filled, 0), timeout=TIMEOUT_S) == (0, 6)
    finally:
        consumer.close()


def test_aiokafka_finds_offsets_for_times(broker: BrokerProcess, filled: str) -> None:
    async def run_all() -> None:
        partition = AioTopicPartition(filled, 0)
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
        await consumer.start()
        try:
            for time, offset in LOOKUPS:
                found = await consumer.offsets_for_times({partition: time})
                assert found[partition].offset == offset
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 6}
        finally:
            await consumer.stop()

    asyncio.run(run_all())


def test_kafka_python_finds_offsets_for_times(broker: BrokerProcess, filled: str) -> None:
    partition = PureTopicPartition(filled, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    try:
        for time, offset in LOOKUPS:
            assert consumer.offsets_for_times({partition: time})[partition].offset == offset
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 6}
    finally:
        consumer.close()


@pytest.mark.kcat
@pytest.mark.skipif(KCAT is None, reason="the command kcat is not installed")
def test_kcat_queries_offsets_by_time(broker: BrokerProcess, filled: str) -> None:
    for time, offset in LOOKUPS:
        assert f"offset {offset}" in run(["-Q", "-b", broker.bootstrap, "-t", f"{filled}:0:{time}"])


def test_latest_of_a_committed_reader_is_the_last_stable_offset(broker: BrokerProcess, filled: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": filled})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(filled, b"open", partition=0)
    producer.flush(TIMEOUT_S)
    assert ask(broker, filled, OffsetSpec.latest())[0] == 7
    committed = IsolationLevel.READ_COMMITTED
    assert ask(broker, filled, OffsetSpec.latest(), isolation_level=committed)[0] == 6
    producer.commit_transaction(TIMEOUT_S)
    eventually(
        lambda: ask(broker, filled, OffsetSpec.latest(), isolation_level=committed)[0], lambda offset: offset == 8
    )


def test_deleted_records_are_gone_for_every_reader(broker: BrokerProcess, filled: str) -> None:
    (done,) = admin_client(broker).delete_records([TopicPartition(filled, 0, 4)]).values()
    assert done.result(TIMEOUT_S).low_watermark == 4
    assert ask(broker, filled, OffsetSpec.earliest())[0] == 4
    assert ask(broker, filled, OffsetSpec.for_timestamp(T0))[0] == 4
    consumer = KafkaConsumer(filled, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", group_id=None)
    try:
        batches = consumer.poll(timeout_ms=10_000)
        assert [message.offset for batch in batches.values() for message in batch] == [4, 5]
    finally:
        consumer.close()


def test_all_records_can_be_deleted_with_the_end_as_limit(broker: BrokerProcess, filled: str) -> None:
    (done,) = admin_client(broker).delete_records([TopicPartition(filled, 0, -1)]).values()
    assert done.result(TIMEOUT_S).low_watermark == 6
    assert ask(broker, filled, OffsetSpec.earliest())[0] == 6
    ConfluentClient().produce(broker.bootstrap, filled, [Sent(value=b"next", partition=0)])
    assert ask(broker, filled, OffsetSpec.latest())[0] == 7


def test_records_above_the_end_cannot_be_deleted(broker: BrokerProcess, filled: str) -> None:
    (done,) = admin_client(broker).delete_records([TopicPartition(filled, 0, 99)]).values()
    with pytest.raises(KafkaException) as failure:
        done.result(TIMEOUT_S)
    assert failure.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_aiokafka_and_kafka_python_delete_records(broker: BrokerProcess, filled: str) -> None:
    async def run_all() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            partition = AioTopicPartition(filled, 0)
            assert await admin.delete_records({partition: RecordsToDelete(before_offset=1)}) == {partition: 1}
        finally:
            await admin.close()

    asyncio.run(run_all())
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        partition = PureTopicPartition(filled, 0)
        admin.delete_records({partition: 2})
    finally:
        admin.close()
    assert ask(broker, filled, OffsetSpec.earliest())[0] == 2


def test_an_offset_out_of_range_is_reset_as_the_client_wishes(broker: BrokerProcess, filled: str) -> None:
    consumer = Consumer(consumer_config(broker.bootstrap, filled))
    consumer.assign([TopicPartition(filled, 0, 1_000)])
    try:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None
        assert message.offset() == 0
    finally:
        consumer.close()
