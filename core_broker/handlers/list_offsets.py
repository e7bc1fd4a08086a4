"""ListOffsets, key 2, versions 1-11: the offset for a timestamp, or for the start or end of a partition.

Supported: latest (-1), earliest (-2), the record with the greatest timestamp (-3), earliest local (-4, the same as
earliest), and the first record at or after a time. Isolation level: for read-committed consumers the end is the last
stable offset. Leader epochs are checked (KIP-320). Replicas see the end of the log. A new leader that does not know yet
what is committed answers OFFSET_NOT_AVAILABLE rather than an offset that is too low (KIP-207).
Ignored: the time-out (10; it is for tiered storage). Latest tiered (-5) and earliest pending upload (-6) are answered
with "none", because there is no tiered storage.

Versions: 2 isolation level (KIP-98); 4 leader epoch; 6 flexible; 7 greatest timestamp (KIP-734); 8 earliest local
(KIP-405); 9 latest tiered (KIP-1005); 10 time-out (KIP-1075); 11 earliest pending upload (KIP-1023).
"""

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Purpose, may_use_cluster, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import list_offsets as wire


class SpecialTime(IntEnum):
    """Timestamps with a special meaning."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_SINCE: Final[Mapping[int, int]] = {
    SpecialTime.LATEST: 0,
    SpecialTime.EARLIEST: 0,
    SpecialTime.MAX_TIMESTAMP: 7,
    SpecialTime.EARLIEST_LOCAL: 8,
    SpecialTime.LATEST_TIERED: 9,
    SpecialTime.EARLIEST_PENDING_UPLOAD: 11,
}
"""The version that introduced each special timestamp."""

_CONSUMER: Final = -1
_DEBUGGER: Final = -2
"""The replica id of tools that may read from any replica."""
_OFFSET_NOT_AVAILABLE_SINCE: Final = 5
_READ_COMMITTED: Final = 1


def handle(request: wire.ListOffsetsRequest, context: RequestContext) -> wire.ListOffsetsResponse:
    """Look up each partition; an error in one does not affect the others."""
    response = wire.ListOffsetsResponse(topics=[])
    may_describe = may_use_topics(context)
    # Any client can claim to be a replica; only a node of the cluster sees what is not committed (CVE-2018-1288).
    if request.replica_id != _CONSUMER and not may_use_cluster(context, Purpose.REPLICATE):
        request.replica_id = _CONSUMER
    for topic in request.topics:
        counts = Counter(partition.partition_index for partition in topic.partitions)
        results = []
        for wanted in topic.partitions:
            result = wire.ListOffsetsPartitionResponse(wanted.partition_index)
            try:
                if not may_describe(topic.name):
                    raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if counts[wanted.partition_index] > 1:
                    raise BrokerError(ErrorCode.INVALID_REQUEST)
                _look_up(topic.name, wanted, request, context, result)
            except BrokerError as error:
                result.error_code = error.code
            results.append(result)
        response.topics.append(wire.ListOffsetsTopicResponse(topic.name, results))
    return response


def _look_up(
    topic: str,
    wanted: wire.ListOffsetsPartition,
    request: wire.ListOffsetsRequest,
    context: RequestContext,
    result: wire.ListOffsetsPartitionResponse,
) -> None:
    if wanted.timestamp < 0 and context.api_version < _SINCE.get(wanted.timestamp, context.api_version + 1):
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
    partition = context.services.partitions.get_in_epoch(
        topic, wanted.partition_index, wanted.current_leader_epoch, from_leader=request.replica_id != _DEBUGGER
    )
    end = _readable_end(partition, request)
    match wanted.timestamp:
        case SpecialTime.LATEST:
            _check_end_is_known(partition, request, context)
            result.offset = end
            result.leader_epoch = partition.leader_epoch
        case SpecialTime.EARLIEST | SpecialTime.EARLIEST_LOCAL:
            result.offset = partition.log.start_offset
            result.leader_epoch = partition.epoch_for_offset(result.offset)
        case SpecialTime.LATEST_TIERED | SpecialTime.EARLIEST_PENDING_UPLOAD:
            pass
        case timestamp:
            if timestamp == SpecialTime.MAX_TIMESTAMP:
                found = partition.log.max_timestamp()
            else:
                found = partition.log.offset_for_timestamp(timestamp, upper_offset=end)
            if found is not None and found.offset < end:
                result.timestamp, result.offset, result.leader_epoch = found.timestamp, found.offset, found.leader_epoch
            else:
                _check_end_is_known(partition, request, context)


def _check_end_is_known(partition: Partition, request: wire.ListOffsetsRequest, context: RequestContext) -> None:
    """Reject a client while the high watermark of a new leader lags behind what earlier leaders committed."""
    if request.replica_id == _CONSUMER and partition.is_leader and partition.high_watermark < partition.epoch_start:
        is_known = context.api_version >= _OFFSET_NOT_AVAILABLE_SINCE
        raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE)


def _readable_end(partition: Partition, request: wire.ListOffsetsRequest) -> int:
    """The end of the log as visible to the client."""
    if request.replica_id != _CONSUMER:
        return partition.log.end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark
