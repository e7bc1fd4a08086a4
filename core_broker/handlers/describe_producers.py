"""DescribeProducers (61), version 0.

The producers that have written to a partition and are still remembered, with their open transactions (KIP-664); what
one needs to find a hanging transaction.
"""

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    """Answer one DescribeProducers request."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(topic.name, [_describe(topic.name, index, context) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, context: RequestContext) -> PartitionResponse:
    try:
        producers = context.services.partitions.get(topic, index).log.producers
    except BrokerError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start_offset,
            )
            for producer in producers.active_producers()
        ],
    )
