"""OffsetForLeaderEpoch (key 23)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since, message


class OffsetForLeaderPartition(Message):
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Message):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


@message(23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest(Message):
    replica_id: Annotated[Int32, Since(3)] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Message):
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message):
    topic: str = ""
    partitions: list[EpochEndOffset] = []


@message(23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
