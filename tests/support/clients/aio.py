"""aiokafka: the asyncio client, which speaks old versions of many APIs."""

import asyncio
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.support.clients.model import TIMEOUT_S, NotEnoughRecords, Received, Sent, Transaction
from tests.support.cluster_security import python_connection


class AioClient:
    """aiokafka, run to completion for each call."""

    name = "aiokafka"
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

        async def run() -> None:
            producer = AIOKafkaProducer(
                **python_connection(bootstrap),
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
            )
            await producer.start()
            try:
                await send_all(producer, topic, records)
            finally:
                await producer.stop()

        asyncio.run(run())

    def consume(self, bootstrap: str, topic: str, count: int, *, isolation: str = "read_uncommitted") -> list[Received]:
        """Read from the beginning of every partition."""

        async def run() -> list[Received]:
            consumer = AIOKafkaConsumer(
                **python_connection(bootstrap), isolation_level=isolation, auto_offset_reset="earliest"
            )
            await consumer.start()
            try:
                await consumer._client.add_topic(topic)  # partitions_for_topic() knows only topics asked for before
                async with asyncio.timeout(TIMEOUT_S):
                    while not (partitions := consumer.partitions_for_topic(topic)):
                        await consumer._client.force_metadata_update()
                consumer.assign([TopicPartition(topic, number) for number in sorted(partitions)])
                await consumer.seek_to_beginning()
                return await poll_records(consumer, count)
            finally:
                await consumer.stop()

        return asyncio.run(run())

    def consume_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[Received]:
        """Join a group, read, commit and leave."""

        async def run() -> list[Received]:
            consumer = AIOKafkaConsumer(
                topic,
                **python_connection(bootstrap),
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            await consumer.start()
            try:
                records = await poll_records(consumer, count)
                await consumer.commit()
            finally:
                await consumer.stop()
            return records

        return asyncio.run(run())

    def transact(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """Run transactions one after the other."""

        async def run() -> None:
            producer = AIOKafkaProducer(**python_connection(bootstrap), transactional_id=transactional_id)
            await producer.start()
            try:
                for transaction in transactions:
                    await producer.begin_transaction()
                    await send_all(producer, topic, transaction.records)
                    await (producer.commit_transaction() if transaction.commit else producer.abort_transaction())
            finally:
                await producer.stop()

        asyncio.run(run())


async def send_all(producer: Any, topic: str, records: Sequence[Sent]) -> None:
    """Send records and wait for the acknowledgement of each."""
    async with asyncio.timeout(TIMEOUT_S):
        futures = [
            await producer.send(
                topic,
                record.value,
                key=record.key,
                headers=list(record.headers),
                timestamp_ms=record.timestamp_ms,
                partition=record.partition,
            )
            for record in records
        ]
        await asyncio.gather(*futures)


async def poll_records(consumer: Any, count: int) -> list[Received]:
    """Read until `count` records came."""
    records: list[Received] = []
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while len(records) < count:
                batches = await consumer.getmany(timeout_ms=200)
                records += [received(message) for batch in batches.values() for message in batch]
    except TimeoutError as error:
        raise NotEnoughRecords(f"{len(records)} of {count} records came") from error
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
