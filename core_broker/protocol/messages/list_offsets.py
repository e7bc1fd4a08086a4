"""ListOffsets (key 2)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, Since, message


class ListOffsetsPartition(Message):
    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Message):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


@message(2, versions=(1, 11), flexible_since=6)
class ListOffsetsRequest(Message):
    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[Int32, Since(10)] = 0


class ListOffsetsPartitionResponse(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


class ListOffsetsTopicResponse(Message):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@message(2, versions=(1, 11), flexible_since=6)
class ListOffsetsResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: list[ListOffsetsTopicResponse] = []
