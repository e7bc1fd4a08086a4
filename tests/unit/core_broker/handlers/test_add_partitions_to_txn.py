import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from core_broker.transactions.transaction import Producer
from tests.support.transaction_handler_world import TX, TransactionHandlers


async def add(
    handlers: TransactionHandlers, producer: Producer, version: int, topics: dict[str, list[int]]
) -> dict[tuple[str, int], ErrorCode]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TX,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name, partitions) for name, partitions in topics.items()],
    )
    answer = await handlers.call(request, AddPartitionsToTxnResponse, version)
    return {
        (topic.name, result.partition_index): ErrorCode(result.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    }


@pytest.mark.parametrize("version", range(4))
async def test_partitions_become_part_of_the_transaction(handlers: TransactionHandlers, version: int) -> None:
    producer = await handlers.init()
    errors = await add(handlers, producer, version, {"orders": [0, 1]})
    assert errors == {("orders", 0): ErrorCode.NONE, ("orders", 1): ErrorCode.NONE}
    assert handlers.coordinator.describe(TX).partitions == {("orders", 0), ("orders", 1)}


async def test_one_unknown_partition_leaves_all_others_out(handlers: TransactionHandlers) -> None:
    producer = await handlers.init()
    errors = await add(handlers, producer, 0, {"orders": [0, 9], "nowhere": [0]})
    assert errors == {
        ("orders", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert handlers.coordinator.describe(TX).partitions == frozenset()


@pytest.mark.parametrize(
    "version, code",
    [(0, ErrorCode.INVALID_PRODUCER_EPOCH), (1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)],
)
async def test_replaced_producer_is_told_so_in_words_it_knows(
    handlers: TransactionHandlers, version: int, code: ErrorCode
) -> None:
    replaced = await handlers.init()
    await handlers.init()
    assert await add(handlers, replaced, version, {"orders": [0]}) == {("orders", 0): code}


@pytest.mark.parametrize("version, code", [(4, ErrorCode.INVALID_TXN_STATE), (5, ErrorCode.TRANSACTION_ABORTABLE)])
async def test_brokers_ask_for_several_transactions_at_once(
    handlers: TransactionHandlers, version: int, code: ErrorCode
) -> None:
    first = await handlers.begin(0)
    second = await handlers.init("other")
    topics = [AddPartitionsToTxnTopic("orders", [0, 1])]
    request = AddPartitionsToTxnRequest(
        [
            AddPartitionsToTxnTransaction(TX, first.producer_id, first.epoch, True, topics),
            AddPartitionsToTxnTransaction("other", second.producer_id, second.epoch, False, topics),
        ]
    )
    answer = await handlers.call(request, AddPartitionsToTxnResponse, version)
    found = {
        result.transactional_id: [
            partition.partition_error_code for partition in result.topic_results[0].results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert found == {TX: [0, code], "other": [0, 0]}
    assert handlers.coordinator.describe(TX).partitions == {("orders", 0)}
