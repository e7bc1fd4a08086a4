import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from core_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from core_broker.transactions.transaction import Producer
from tests.support.group_handler_world import GROUP, GroupHandlers
from tests.support.handler_world import HandlerWorld
from tests.support.transaction_handler_world import TX, TransactionHandlers, transaction_handlers


class Both:
    """Groups and transactions in one broker."""

    def __init__(self, groups: GroupHandlers, transactions: TransactionHandlers) -> None:
        self.groups = groups
        self.transactions = transactions

    async def add_offsets(self, producer: Producer) -> None:
        request = AddOffsetsToTxnRequest(TX, producer.producer_id, producer.epoch, GROUP)
        answer = await self.groups.call(request, AddOffsetsToTxnResponse, 3)
        assert answer.error_code == 0

    async def commit(self, producer: Producer, *partitions: int, version: int, topic: str = "orders") -> list[int]:
        request = TxnOffsetCommitRequest(
            transactional_id=TX,
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    topic, [TxnOffsetCommitRequestPartition(partition, 5) for partition in partitions]
                )
            ],
        )
        answer = await self.groups.call(request, TxnOffsetCommitResponse, version)
        return [partition.error_code for partition in answer.topics[0].partitions]

    async def stable(self, partition: int) -> tuple[int, int]:
        (found,) = await self.groups.fetch("orders", partition, require_stable=True)
        return found


@pytest.fixture
async def both(world: HandlerWorld) -> AsyncIterator[Both]:
    groups = GroupHandlers(world)
    async with transaction_handlers(world) as transactions:
        running = asyncio.get_running_loop().create_task(groups.coordinator.run())
        await asyncio.sleep(0)
        yield Both(groups, transactions)
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.parametrize("version", range(5))
async def test_offsets_are_pending_after_they_were_added_to_the_transaction(both: Both, version: int) -> None:
    producer = await both.transactions.init()
    await both.add_offsets(producer)
    assert await both.commit(producer, 0, version=version) == [0]
    assert await both.stable(0) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


@pytest.mark.parametrize("version,error", [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)])
async def test_offsets_that_were_not_added_are_refused(both: Both, version: int, error: ErrorCode) -> None:
    producer = await both.transactions.begin(0)
    assert await both.commit(producer, 0, version=version) == [error]
    assert await both.stable(0) == (-1, 0)


async def test_offsets_are_not_verified_once_that_is_switched_off(both: Both) -> None:
    producer = await both.transactions.begin(0)
    await both.groups.world.configure_broker("transaction.partition.verification.enable", "false")
    assert await both.commit(producer, 0, version=4) == [0]


async def test_version_five_adds_the_offsets_by_itself(both: Both) -> None:
    producer = await both.transactions.init(version=5)
    assert await both.commit(producer, 0, version=5) == [0]
    assert await both.stable(0) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


async def test_zombie_is_refused(both: Both) -> None:
    zombie = await both.transactions.init()
    await both.add_offsets(zombie)
    await both.transactions.init()
    assert await both.commit(zombie, 0, version=3) == [ErrorCode.INVALID_PRODUCER_EPOCH]


async def test_each_partition_is_refused_for_itself(both: Both) -> None:
    producer = await both.transactions.init()
    await both.add_offsets(producer)
    assert await both.commit(producer, 0, 9, version=3) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await both.commit(producer, 0, version=3, topic="nowhere") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
