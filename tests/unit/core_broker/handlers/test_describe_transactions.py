from core_broker.errors import ErrorCode
from core_broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from tests.support.transaction_handler_world import TX, TransactionHandlers


async def test_open_transaction_is_described(handlers: TransactionHandlers) -> None:
    producer = await handlers.begin(0, 1)
    answer = await handlers.call(DescribeTransactionsRequest([TX]), DescribeTransactionsResponse, 0)
    (state,) = answer.transaction_states
    assert (state.error_code, state.transactional_id, state.transaction_state) == (0, TX, "Ongoing")
    assert (state.producer_id, state.producer_epoch, state.transaction_timeout_ms) == (*producer, 60_000)
    assert state.transaction_start_time_ms == handlers.world.clock.now_ms()
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("orders", [0, 1])]


async def test_unknown_and_empty_ids_are_told_apart(handlers: TransactionHandlers) -> None:
    answer = await handlers.call(DescribeTransactionsRequest(["unknown", ""]), DescribeTransactionsResponse, 0)
    assert [state.error_code for state in answer.transaction_states] == [
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.INVALID_REQUEST,
    ]
