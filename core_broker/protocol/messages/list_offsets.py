"""ListOffsets (key 2)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, Since


class ListOffsetsPartition(Message):
    """Part of `ListOffsetsRequest`."""

    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Message):
    """Part of `ListOffsetsRequest`."""

    name: str = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Message):
    """Request of ListOffsets (key 2)."""

    API_KEY = 2
    VERSIONS = (1, 11)
    FLEXIBLE_SINCE = 6

    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[Int32, Since(10)] = 0


class ListOffsetsPartitionResponse(Message):
    """Part of `ListOffsetsResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


class ListOffsetsTopicResponse(Message):
    """Part of `ListOffsetsResponse`."""

    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Message):
    """Response of ListOffsets (key 2)."""

    API_KEY = 2
    VERSIONS = (1, 11)
    FLEXIBLE_SINCE = 6

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: list[ListOffsetsTopicResponse] = []
