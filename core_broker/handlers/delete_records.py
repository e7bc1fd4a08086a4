"""DeleteRecords, key 21, versions 0-2: raises the start offset of a partition (KIP-107).

Supported: an offset, or -1 for the high watermark. As in Kafka, rejected for internal topics and for topics that are
only compacted, where a missing record would look like a deleted key. With followers, the response waits until all live
ones have raised their start, too; the low watermark is the lowest of all starts.
Ignored: nothing.

Versions: 2 flexible.
"""

import asyncio
from typing import Final

from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import delete_records as wire

_NO_LOW_WATERMARK: Final = -1


async def handle(request: wire.DeleteRecordsRequest, context: RequestContext) -> wire.DeleteRecordsResponse:
    """Delete records before the offset of each partition, then wait for the followers."""
    response = wire.DeleteRecordsResponse()
    waits = []
    may_delete = may_use_topics(context)
    for topic in request.topics:
        results = [wire.DeleteRecordsPartitionResult(wanted.partition_index) for wanted in topic.partitions]
        response.topics.append(wire.DeleteRecordsTopicResult(topic.name, results))
        for wanted, result in zip(topic.partitions, results, strict=True):
            partition = _delete(topic.name, wanted, result, context, may_delete)
            if partition is not None:
                waits.append(_finish(partition, result, timeout_ms=max(request.timeout_ms, 1)))
    await asyncio.gather(*waits)
    return response


def _delete(
    topic: str,
    wanted: wire.DeleteRecordsPartition,
    result: wire.DeleteRecordsPartitionResult,
    context: RequestContext,
    may_delete: Predicate,
) -> Partition | None:
    """Delete on the leader; returns the partition if its followers have to do the same."""
    try:
        if not may_delete(topic):
            raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic in INTERNAL_TOPICS:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = context.services.partitions.get(topic, wanted.partition_index)
        if "delete" not in partition.log.settings.cleanup_policy:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)
        result.low_watermark = partition.delete_records_before(wanted.offset)
    except BrokerError as error:
        result.low_watermark, result.error_code = _NO_LOW_WATERMARK, error.code
        return None
    return partition if partition.is_replicated else None


async def _finish(partition: Partition, result: wire.DeleteRecordsPartitionResult, *, timeout_ms: int) -> None:
    try:
        result.low_watermark = await partition.wait_deleted(result.low_watermark, timeout_ms=timeout_ms)
    except BrokerError as error:
        result.low_watermark, result.error_code = partition.low_watermark, error.code
