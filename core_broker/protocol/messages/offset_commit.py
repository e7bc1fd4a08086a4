"""OffsetCommit (key 8)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class OffsetCommitRequestPartition(Message):
    """Part of `OffsetCommitRequest`."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, Since(6)] = -1
    committed_metadata: Annotated[str | None, NullableSince()] = ""


class OffsetCommitRequestTopic(Message):
    """Part of `OffsetCommitRequest`."""

    name: Annotated[str, Since(0, 9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    """Request of OffsetCommit (key 8)."""

    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE_SINCE = 8

    group_id: str = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(7), NullableSince()] = None
    retention_time_ms: Annotated[Int64, Since(2, 4)] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    """Part of `OffsetCommitResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Message):
    """Part of `OffsetCommitResponse`."""

    name: Annotated[str, Since(0, 9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    """Response of OffsetCommit (key 8)."""

    API_KEY = 8
    VERSIONS = (2, 10)
    FLEXIBLE_SINCE = 8

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
