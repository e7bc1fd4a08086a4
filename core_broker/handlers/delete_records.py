"""DeleteRecords, key 21, versions 0-2: raises the start offset of a partition (KIP-107).

Supported: an offset, or -1 for the high watermark. As in Kafka, rejected for internal topics and for topics that are
only compacted, where a missing record would look like a deleted key.
Ignored: the time-out (the deletion does not wait for anything).

Versions: 2 flexible.
"""

from typing import Final

from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import delete_records as wire

_NO_LOW_WATERMARK: Final = -1


def handle(request: wire.DeleteRecordsRequest, context: RequestContext) -> wire.DeleteRecordsResponse:
    """Delete records before the offset of each partition."""
    return wire.DeleteRecordsResponse(
        topics=[
            wire.DeleteRecordsTopicResult(
                topic.name, [_delete(topic.name, partition, context) for partition in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(
    topic: str, wanted: wire.DeleteRecordsPartition, context: RequestContext
) -> wire.DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL_TOPICS:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = context.services.partitions.get(topic, wanted.partition_index)
        if "delete" not in partition.log.settings.cleanup_policy:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)
        low_watermark = partition.delete_records_before(wanted.offset)
    except BrokerError as error:
        return wire.DeleteRecordsPartitionResult(wanted.partition_index, _NO_LOW_WATERMARK, error.code)
    return wire.DeleteRecordsPartitionResult(wanted.partition_index, low_watermark)
