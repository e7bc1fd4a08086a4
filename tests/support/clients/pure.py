"""kafka-python: the client in plain Python, which speaks the newest versions of most APIs."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import kafka.codec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.support.clients.model import TIMEOUT_S, NotEnoughRecords, Received, Sent, Transaction
from tests.support.cluster_security import python_connection
from tests.support.patience import eventually

_CODECS = {
    "none": True,
    "gzip": kafka.codec.has_gzip(),
    "snappy": kafka.codec.has_snappy(),
    "lz4": kafka.codec.has_lz4(),
    "zstd": kafka.codec.has_zstd(),
}


class PureClient:
    """kafka-python."""

    name = "kafka-python"
    codecs = frozenset(codec for codec, is_there in _CODECS.items() if is_there)
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
        producer = KafkaProducer(
            **python_connection(bootstrap),
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
        )
        with closing(producer):
            send_all(producer, topic, records)

    def consume(self, bootstrap: str, topic: str, count: int, *, isolation: str = "read_uncommitted") -> list[Received]:
        """Read from the beginning of every partition."""
        consumer = KafkaConsumer(
            **python_connection(bootstrap), isolation_level=isolation, auto_offset_reset="earliest"
        )
        with kept_awake(consumer):
            partitions = eventually(lambda: consumer.partitions_for_topic(topic), timeout_s=TIMEOUT_S)
            consumer.assign([TopicPartition(topic, number) for number in sorted(partitions)])
            consumer.seek_to_beginning()
            return poll_records(consumer, count)

    def consume_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[Received]:
        """Join a group, read, commit and leave."""
        consumer = KafkaConsumer(
            topic,
            **python_connection(bootstrap),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        with kept_awake(consumer):
            records = poll_records(consumer, count)
            consumer.commit()
        return records

    def transact(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """Run transactions one after the other."""
        producer = KafkaProducer(**python_connection(bootstrap), transactional_id=transactional_id)
        with closing(producer):
            producer.init_transactions()
            for transaction in transactions:
                producer.begin_transaction()
                send_all(producer, topic, transaction.records)
                producer.commit_transaction() if transaction.commit else producer.abort_transaction()


@contextmanager
def kept_awake(consumer: Any) -> Iterator[Any]:
    """Look after a consumer twice a second for as long as the block lasts, then close it.

    Version 3.0.12 has two faults that show when the machine is busy, though its every request has been answered:

    - now and then its network thread misses that its own caller has work for it, and both wait for ever;
    - a join that ends between two polls is forgotten when what made it necessary (the topic's partitions, not known at
      the first join) has gone by then: the member sends no heartbeat and never asks again.
    """
    done = threading.Event()

    async def nothing() -> None:
        pass

    def look_after() -> None:
        forgotten = None
        while not done.wait(0.5):
            with suppress(RuntimeError):  # closed a moment ago
                consumer._net.call_soon_threadsafe(nothing)
            join = consumer._coordinator._join_task if consumer._coordinator else None
            if join is not None and join.is_done:
                if join is forgotten:
                    consumer._coordinator.rejoin_needed = True
                forgotten = join

    thread = threading.Thread(target=look_after, daemon=True)
    thread.start()
    try:
        yield consumer
    finally:
        consumer.close()
        done.set()
        thread.join(10)


def send_all(producer: Any, topic: str, records: Sequence[Sent]) -> None:
    """Send records and wait for the acknowledgement of each."""
    futures = [
        producer.send(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            timestamp_ms=record.timestamp_ms,
            partition=record.partition,
        )
        for record in records
    ]
    producer.flush(timeout=TIMEOUT_S)
    for future in futures:
        future.get(timeout=TIMEOUT_S)


def poll_records(consumer: Any, count: int) -> list[Received]:
    """Read until `count` records came."""
    records: list[Received] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(records) < count:
        if time.monotonic() > deadline:
            raise NotEnoughRecords(f"{len(records)} of {count} records came")
        batches = consumer.poll(timeout_ms=200)
        records += [received(message) for batch in batches.values() for message in batch]
    return records


def received(message: Any) -> Received:
    """A message in our shape."""
    return Received(
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
        timestamp_ms=message.timestamp,
    )
