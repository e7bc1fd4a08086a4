"""KIP-890 from end to end, as Java clients since 4.0 speak it: no AddPartitionsToTxn, a new epoch after each end."""

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from core_broker.transactions.transaction import Producer
from tests.support.transaction_handler_world import TX, TransactionHandlers


async def produce(
    handlers: TransactionHandlers, producer: Producer, *, sequence: int = 0, version: int = 12
) -> ErrorCode:
    batch = build_batch(
        [Record(timestamp=handlers.world.clock.now_ms(), value=b"v")],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    request = ProduceRequest(
        TX, -1, 1000, [TopicProduceData("orders", partition_data=[PartitionProduceData(0, batch)])]
    )
    answer = await handlers.call(request, ProduceResponse, version)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


async def end(handlers: TransactionHandlers, producer: Producer, *, commit: bool = True) -> Producer:
    answer = await handlers.call(EndTxnRequest(TX, *producer, commit), EndTxnResponse, 5)
    assert answer.error_code == 0
    return Producer(answer.producer_id, answer.producer_epoch)


async def test_transactions_follow_each_other_without_adding_partitions(handlers: TransactionHandlers) -> None:
    producer = first = await handlers.init(version=5)
    for commit in (True, False, True):
        assert await produce(handlers, producer) is ErrorCode.NONE
        assert await produce(handlers, producer, sequence=1) is ErrorCode.NONE
        producer = await end(handlers, producer, commit=commit)
    partition = handlers.world.partition("orders")
    assert producer == (first.producer_id, first.epoch + 3)
    assert partition.last_stable_offset == partition.log.end_offset == 9
    assert partition.log.aborted_transactions(0, 9) == [(first.producer_id, 3)]


async def test_record_delayed_from_the_last_transaction_is_refused(handlers: TransactionHandlers) -> None:
    producer = await handlers.init(version=5)
    await produce(handlers, producer)
    await end(handlers, producer)
    assert await produce(handlers, producer, sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert handlers.world.partition("orders").log.first_unstable_offset is None


async def test_first_record_of_the_next_transaction_can_be_retried_while_markers_are_missing(
    handlers: TransactionHandlers,
) -> None:
    producer = await handlers.init(version=5)
    await produce(handlers, producer)
    handlers.markers_may_be_written.clear()
    producer = await end(handlers, producer)
    assert (await produce(handlers, producer)).retriable
    handlers.markers_may_be_written.set()
    assert await handlers.coordinator.wait_until_idle(timeout_ms=5000)
    assert await produce(handlers, producer) is ErrorCode.NONE


async def test_records_of_an_old_producer_are_verified_until_that_is_switched_off(
    handlers: TransactionHandlers,
) -> None:
    producer = await handlers.init()
    assert await produce(handlers, producer, version=11) is ErrorCode.TRANSACTION_ABORTABLE
    await handlers.world.configure_broker("transaction.partition.verification.enable", "false")
    assert await produce(handlers, producer, version=11) is ErrorCode.NONE
