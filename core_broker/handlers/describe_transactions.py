"""DescribeTransactions, key 65, version 0.

The state of transactional ids that this broker coordinates (KIP-664).
"""

from collections import defaultdict

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(request: DescribeTransactionsRequest, context: RequestContext) -> DescribeTransactionsResponse:
    """Describe the transaction of each id."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(transactional_id, context) for transactional_id in request.transactional_ids]
    )


def _describe(transactional_id: str, context: RequestContext) -> TransactionState:
    try:
        current = context.services.transactions.describe(transactional_id)
    except BrokerError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(current.partitions):
        by_topic[topic].append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=current.state.label,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.start_ms,
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        topics=[TopicData(topic, partitions) for topic, partitions in by_topic.items()],
    )
