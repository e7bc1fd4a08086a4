"""Consume, transform, produce: the offsets of the input are part of the transaction of the output."""

import asyncio
from collections import Counter
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PureTopicPartition
from kafka.structs import OffsetAndMetadata

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, consumer_config
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.clients.pure import kept_awake

INPUTS = 60


def fill(broker: BrokerProcess, topic: str) -> None:
    create_topic(broker, topic, partitions=2)
    records = [Sent(value=b"%d" % number, partition=number % 2) for number in range(INPUTS)]
    ConfluentClient().produce(broker.bootstrap, topic, records)


def outputs(broker: BrokerProcess, topic: str) -> Counter[bytes | None]:
    found = ConfluentClient().consume(broker.bootstrap, topic, INPUTS, isolation="read_committed")
    return Counter(record.value for record in found)


EXPECTED = Counter({b"out-%d" % number: 1 for number in range(INPUTS)})


def committed(broker: BrokerProcess, group: str, topic: str) -> list[int]:
    consumer = Consumer(consumer_config(broker.bootstrap, group))
    try:
        found = consumer.committed([TopicPartition(topic, number) for number in range(2)], timeout=TIMEOUT_S)
        return [partition.offset for partition in found]
    finally:
        consumer.close()


def test_output_is_exact_though_every_other_transaction_is_aborted(broker: BrokerProcess, name: str) -> None:
    source, target = f"{name}-in", f"{name}-out"
    fill(broker, source)
    create_topic(broker, target)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    done = attempts = 0
    while done < INPUTS:
        consumer = Consumer(consumer_config(broker.bootstrap, name, **{"session.timeout.ms": 6000}))
        consumer.subscribe([source])
        try:
            batch = [message for message in consumer.consume(10, timeout=5) if not message.error()]
            if not batch:
                continue
            producer.begin_transaction()
            for message in batch:
                producer.produce(target, b"out-" + (message.value() or b""), partition=0)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT_S
            )
            attempts += 1
            if attempts % 2:
                producer.abort_transaction(TIMEOUT_S)
            else:
                producer.commit_transaction(TIMEOUT_S)
                done += len(batch)
        finally:
            consumer.close()
    assert outputs(broker, target) == EXPECTED
    eventually(lambda: sum(committed(broker, name, source)), lambda total: total == INPUTS)


def test_aiokafka_consume_transform_produce(broker: BrokerProcess, name: str) -> None:
    source, target = f"{name}-in", f"{name}-out"
    fill(broker, source)
    create_topic(broker, target)

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=broker.bootstrap,
            group_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
        await consumer.start()
        await producer.start()
        try:
            done = 0
            async with asyncio.timeout(TIMEOUT_S):
                while done < INPUTS:
                    batches = await consumer.getmany(timeout_ms=500, max_records=20)
                    if not batches:
                        continue
                    async with producer.transaction():
                        for partition, messages in batches.items():
                            for message in messages:
                                await producer.send(target, b"out-" + message.value, partition=0)
                            offsets = {partition: messages[-1].offset + 1}
                            await producer.send_offsets_to_transaction(offsets, name)
                            done += len(messages)
        finally:
            await producer.stop()
            await consumer.stop()

    asyncio.run(run())
    eventually(lambda: sum(committed(broker, name, source)), lambda total: total == INPUTS)
    assert outputs(broker, target) == EXPECTED


def test_kafka_python_consume_transform_produce(broker: BrokerProcess, name: str) -> None:
    source, target = f"{name}-in", f"{name}-out"
    fill(broker, source)
    create_topic(broker, target)
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=broker.bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    with closing(producer), kept_awake(consumer):
        producer.init_transactions()
        done = 0
        while done < INPUTS:
            batches = consumer.poll(timeout_ms=500, max_records=20)
            if not batches:
                continue
            producer.begin_transaction()
            offsets = {}
            for partition, messages in batches.items():
                for message in messages:
                    producer.send(target, b"out-" + message.value, partition=0)
                offsets[partition] = OffsetAndMetadata(messages[-1].offset + 1, "", -1)
                done += len(messages)
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
        eventually(lambda: consumer.committed(PureTopicPartition(source, 1)), lambda offset: offset == INPUTS / 2)
    assert outputs(broker, target) == EXPECTED


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_become_visible_with_the_transaction(broker: BrokerProcess, name: str, commit: bool) -> None:
    fill(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    consumer = Consumer(consumer_config(broker.bootstrap, name))
    try:
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(name, 0, 7), TopicPartition(name, 1, 9)], consumer.consumer_group_metadata(), TIMEOUT_S
        )
        producer.commit_transaction(TIMEOUT_S) if commit else producer.abort_transaction(TIMEOUT_S)
    finally:
        consumer.close()
    nothing = -1001
    expected = [7, 9] if commit else [nothing, nothing]
    eventually(lambda: committed(broker, name, name), lambda found: found == expected)
