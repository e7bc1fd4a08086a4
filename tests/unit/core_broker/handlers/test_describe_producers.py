from core_broker.errors import ErrorCode
from core_broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from core_broker.protocol.records import Record, build_batch
from tests.support.transaction_handler_world import TransactionHandlers


async def test_producers_and_their_open_transactions_are_described(handlers: TransactionHandlers) -> None:
    records = [Record(timestamp=handlers.world.clock.now_ms(), value=b"v") for _ in range(3)]
    batch = build_batch(records, producer_id=9, producer_epoch=2, base_sequence=0, is_transactional=True)
    handlers.world.partition("orders").append(batch, acks_all=True)
    request = DescribeProducersRequest([TopicRequest("orders", [0])])
    answer = await handlers.call(request, DescribeProducersResponse, 0)
    (partition,) = answer.topics[0].partitions
    (producer,) = partition.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (9, 2, 2)
    assert producer.last_timestamp == handlers.world.clock.now_ms()
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, 0)


async def test_unknown_partition_is_told(handlers: TransactionHandlers) -> None:
    request = DescribeProducersRequest([TopicRequest("nowhere", [0])])
    answer = await handlers.call(request, DescribeProducersResponse, 0)
    (partition,) = answer.topics[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
