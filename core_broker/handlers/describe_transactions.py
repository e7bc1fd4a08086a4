"""DescribeTransactions, key 65, version 0.

The state of transactional ids that this broker coordinates (KIP-664).
"""

from collections import defaultdict

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, may_use_topics, may_use_transactions
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_transactions as wire


def handle(request: wire.DescribeTransactionsRequest, context: RequestContext) -> wire.DescribeTransactionsResponse:
    """Describe the transaction of each id."""
    may_describe, may_describe_topic = may_use_transactions(context), may_use_topics(context)
    return wire.DescribeTransactionsResponse(
        transaction_states=[
            _describe(transactional_id, context, may_describe_topic)
            if may_describe(transactional_id)
            else wire.TransactionState(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id)
            for transactional_id in request.transactional_ids
        ]
    )


def _describe(transactional_id: str, context: RequestContext, may_describe_topic: Predicate) -> wire.TransactionState:
    try:
        current = context.services.transactions.describe(transactional_id)
    except BrokerError as error:
        return wire.TransactionState(error_code=error.code, transactional_id=transactional_id)
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(current.partitions):
        if may_describe_topic(topic):
            by_topic[topic].append(partition)
    return wire.TransactionState(
        transactional_id=transactional_id,
        transaction_state=current.state.label,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.start_ms,
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        topics=[wire.TopicData(topic, partitions) for topic, partitions in by_topic.items()],
    )
