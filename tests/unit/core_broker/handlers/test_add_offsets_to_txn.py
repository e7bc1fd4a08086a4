import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC, partition_for
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from tests.support.handler_world import OFFSETS_PARTITIONS
from tests.support.transaction_handler_world import TX, TransactionHandlers


@pytest.mark.parametrize("version", range(5))
async def test_partition_of_the_group_becomes_part_of_the_transaction(
    handlers: TransactionHandlers, version: int
) -> None:
    producer = await handlers.init()
    answer = await handlers.call(AddOffsetsToTxnRequest(TX, *producer, "readers"), AddOffsetsToTxnResponse, version)
    assert answer.error_code == 0
    partition = partition_for("readers", OFFSETS_PARTITIONS)
    assert handlers.coordinator.describe(TX).partitions == {(OFFSETS_TOPIC, partition)}


@pytest.mark.parametrize("version, code", [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
async def test_replaced_producer_is_told_so_in_words_it_knows(
    handlers: TransactionHandlers, version: int, code: ErrorCode
) -> None:
    replaced = await handlers.init()
    await handlers.init()
    answer = await handlers.call(AddOffsetsToTxnRequest(TX, *replaced, "readers"), AddOffsetsToTxnResponse, version)
    assert answer.error_code == code
