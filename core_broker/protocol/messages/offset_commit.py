"""OffsetCommit (key 8)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class OffsetCommitRequestPartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, Since(6)] = -1
    committed_metadata: Annotated[str | None, NullableSince()] = ""


class OffsetCommitRequestTopic(Message):
    name: Annotated[str, Since(0, 9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


@message(8, versions=(2, 10), flexible_since=8)
class OffsetCommitRequest(Message):
    group_id: str = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(7), NullableSince()] = None
    retention_time_ms: Annotated[Int64, Since(2, 4)] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Message):
    name: Annotated[str, Since(0, 9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


@message(8, versions=(2, 10), flexible_since=8)
class OffsetCommitResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
