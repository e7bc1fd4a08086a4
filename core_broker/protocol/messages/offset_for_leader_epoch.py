"""OffsetForLeaderEpoch (key 23)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since


class OffsetForLeaderPartition(Message):
    """Part of `OffsetForLeaderEpochRequest`."""

    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Message):
    """Part of `OffsetForLeaderEpochRequest`."""

    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Message):
    """Request of OffsetForLeaderEpoch (key 23)."""

    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE_SINCE = 4

    replica_id: Annotated[Int32, Since(3)] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Message):
    """Part of `OffsetForLeaderEpochResponse`."""

    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message):
    """Part of `OffsetForLeaderEpochResponse`."""

    topic: str = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Message):
    """Response of OffsetForLeaderEpoch (key 23)."""

    API_KEY = 23
    VERSIONS = (2, 4)
    FLEXIBLE_SINCE = 4

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
