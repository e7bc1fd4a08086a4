"""confluent-kafka: librdkafka as people use it from Python."""

import time
from collections.abc import Sequence
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.clients.model import TIMEOUT_S, NotEnoughRecords, Received, Sent, Transaction
from tests.support.cluster_security import connection
from tests.support.patience import eventually


class ConfluentClient:
    """The newest librdkafka."""

    name = "confluent-kafka"
    codecs = frozenset({"none", "gzip", "snappy", "lz4", "zstd"})
    sets_timestamps = True

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        """Send records and wait until all are acknowledged."""
        producer = Producer(
            {
                **connection(bootstrap),
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
            }
        )
        send_all(producer, topic, records)

    def consume(self, bootstrap: str, topic: str, count: int, *, isolation: str = "read_uncommitted") -> list[Received]:
        """Read from the beginning of every partition."""
        consumer = Consumer(consumer_config(bootstrap, f"unused-{topic}", **{"isolation.level": isolation}))
        try:
            partitions = await_partitions(consumer, topic)
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            return poll_records(consumer, count)
        finally:
            consumer.close()

    def consume_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[Received]:
        """Join a group, read, commit and leave."""
        consumer = Consumer(consumer_config(bootstrap, group))
        try:
            consumer.subscribe([topic])
            records = poll_records(consumer, count)
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return records

    def transact(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """Run transactions one after the other."""
        producer = Producer({**connection(bootstrap), "transactional.id": transactional_id})
        producer.init_transactions(TIMEOUT_S)
        for transaction in transactions:
            producer.begin_transaction()
            send_all(producer, topic, transaction.records)
            producer.commit_transaction(TIMEOUT_S) if transaction.commit else producer.abort_transaction(TIMEOUT_S)


def consumer_config(bootstrap: str, group: str, **extra: Any) -> dict[str, Any]:
    """Settings of a consumer that starts at the beginning and commits by hand."""
    return {
        **connection(bootstrap),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "check.crcs": True,
        **extra,
    }


def send_all(producer: Producer, topic: str, records: Sequence[Sent]) -> None:
    """Send records and wait for the acknowledgement of each."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for record in records:
        extra: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        partition = -1 if record.partition is None else record.partition
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=partition,
            headers=list(record.headers),
            on_delivery=delivered,
            **extra,
        )
        producer.poll(0)
    remaining = producer.flush(TIMEOUT_S)
    assert remaining == 0, f"{remaining} records were not delivered in time"
    if failures:
        raise KafkaException(failures[0])


def await_partitions(consumer: Consumer, topic: str) -> list[int]:
    """The partitions of a topic; of a new one, a broker may hear a moment later than the one that was written to."""
    return eventually(
        lambda: list(consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions), timeout_s=TIMEOUT_S
    )


def read_to_end(bootstrap: str, topic: str, *, isolation: str = "read_uncommitted") -> list[Received]:
    """All records that stand in a topic now, however many compaction or transactions have left."""
    consumer = Consumer(consumer_config(bootstrap, f"unused-{topic}", **{"isolation.level": isolation}))
    try:
        partitions = [TopicPartition(topic, number) for number in await_partitions(consumer, topic)]
        ends = {p.partition: consumer.get_watermark_offsets(p, timeout=TIMEOUT_S) for p in partitions}
        consumer.assign([TopicPartition(topic, number, start) for number, (start, _) in ends.items()])
        return _read_until(consumer, {number: end for number, (start, end) in ends.items() if end > start})
    finally:
        consumer.close()


def _read_until(consumer: Consumer, ends: dict[int, int]) -> list[Received]:
    records: list[Received] = []
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        positions = {partition.partition: partition.offset for partition in consumer.position(consumer.assignment())}
        if all(positions[number] >= end for number, end in ends.items()):
            return records
        if time.monotonic() > deadline:
            raise NotEnoughRecords(f"readers stand at {positions}, the ends are {ends}")
        for message in consumer.consume(1_000, timeout=0.2):
            error = message.error()
            if error is None:
                records.append(received(message))
            elif not error.retriable():
                raise KafkaException(error)


def poll_records(consumer: Consumer, count: int, *, timeout_s: float = TIMEOUT_S) -> list[Received]:
    """Read until `count` records came."""
    records: list[Received] = []
    deadline = time.monotonic() + timeout_s
    while len(records) < count:
        if time.monotonic() > deadline:
            raise NotEnoughRecords(f"{len(records)} of {count} records came in {timeout_s} s")
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if not error.retriable() and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            continue
        records.append(received(message))
    return records


def received(message: Message) -> Received:
    """A message in our shape."""
    pairs = cast(list[tuple[str, bytes | None]], message.headers() or [])
    headers = tuple((key, value or b"") for key, value in pairs)
    key, value = message.key(), message.value()
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Received(
        partition=partition,
        offset=offset,
        key=None if key is None else bytes(key),
        value=None if value is None else bytes(value),
        headers=headers,
        timestamp_ms=message.timestamp()[1],
    )
