"""DescribeProducers, key 61, version 0.

The producers with state in a partition, and their open transactions (KIP-664); used to find hanging transactions.
"""

from core_broker.cluster.controller.topic_rules import check_topic_name
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_producers as wire


def handle(request: wire.DescribeProducersRequest, context: RequestContext) -> wire.DescribeProducersResponse:
    """Describe the producers of each partition."""
    may_read = may_use_topics(context)
    return wire.DescribeProducersResponse(
        topics=[
            wire.TopicResponse(
                topic.name, [_describe(topic.name, index, context, may_read) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, context: RequestContext, may_read: Predicate) -> wire.PartitionResponse:
    try:
        check_topic_name(topic)
        if not may_read(topic):
            raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        producers = context.services.partitions.get(topic, index).producers
    except BrokerError as error:
        return wire.PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
    return wire.PartitionResponse(
        partition_index=index,
        active_producers=[
            wire.ProducerState(
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
