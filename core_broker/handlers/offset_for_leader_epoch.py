"""OffsetForLeaderEpoch, key 23, versions 2-4: the end offset of a leader epoch, which shows where logs diverge.

Supported: consumers and replicas (KIP-101, KIP-279, KIP-320); the client's leader epoch is checked.
Ignored: nothing.

Versions: 3 replica id; 4 flexible.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import offset_for_leader_epoch as wire


def handle(request: wire.OffsetForLeaderEpochRequest, context: RequestContext) -> wire.OffsetForLeaderEpochResponse:
    """Look up each partition."""
    may_describe = may_use_topics(context)
    return wire.OffsetForLeaderEpochResponse(
        topics=[
            wire.OffsetForLeaderTopicResult(
                topic.topic, [_look_up(topic.topic, item, context, may_describe) for item in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _look_up(
    topic: str, wanted: wire.OffsetForLeaderPartition, context: RequestContext, may_describe: Predicate
) -> wire.EpochEndOffset:
    result = wire.EpochEndOffset(partition=wanted.partition)
    try:
        if not may_describe(topic):
            raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = context.services.partitions.get_in_epoch(topic, wanted.partition, wanted.current_leader_epoch)
    except BrokerError as error:
        result.error_code = error.code
        return result
    result.leader_epoch, result.end_offset = partition.end_offset_for_epoch(wanted.leader_epoch)
    return result
