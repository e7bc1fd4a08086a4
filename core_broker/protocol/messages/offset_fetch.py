"""OffsetFetch (key 9)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class OffsetFetchRequestTopic(Message):
    name: Annotated[str, Since(0, 7)] = ""
    partition_indexes: Annotated[list[Int32], Since(0, 7)] = []


class OffsetFetchRequestTopics(Message):
    name: Annotated[str, Since(8, 9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    partition_indexes: Annotated[list[Int32], Since(8)] = []


class OffsetFetchRequestGroup(Message):
    group_id: Annotated[str, Since(8)] = ""
    member_id: Annotated[str | None, Since(9), NullableSince()] = None
    member_epoch: Annotated[Int32, Since(9)] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, Since(8), NullableSince()] = []


@message(9, versions=(1, 10), flexible_since=6)
class OffsetFetchRequest(Message):
    group_id: Annotated[str, Since(0, 7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, Since(0, 7), NullableSince(2)] = []
    groups: Annotated[list[OffsetFetchRequestGroup], Since(8)] = []
    require_stable: Annotated[bool, Since(7)] = False


class OffsetFetchResponsePartition(Message):
    partition_index: Annotated[Int32, Since(0, 7)] = 0
    committed_offset: Annotated[Int64, Since(0, 7)] = 0
    committed_leader_epoch: Annotated[Int32, Since(5, 7)] = -1
    metadata: Annotated[str | None, Since(0, 7), NullableSince()] = ""
    error_code: Annotated[Int16, Since(0, 7)] = 0


class OffsetFetchResponseTopic(Message):
    name: Annotated[str, Since(0, 7)] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], Since(0, 7)] = []


class OffsetFetchResponsePartitions(Message):
    partition_index: Annotated[Int32, Since(8)] = 0
    committed_offset: Annotated[Int64, Since(8)] = 0
    committed_leader_epoch: Annotated[Int32, Since(8)] = -1
    metadata: Annotated[str | None, Since(8), NullableSince()] = ""
    error_code: Annotated[Int16, Since(8)] = 0


class OffsetFetchResponseTopics(Message):
    name: Annotated[str, Since(8, 9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = ZERO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], Since(8)] = []


class OffsetFetchResponseGroup(Message):
    group_id: Annotated[str, Since(8)] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], Since(8)] = []
    error_code: Annotated[Int16, Since(8)] = 0


@message(9, versions=(1, 10), flexible_since=6)
class OffsetFetchResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], Since(0, 7)] = []
    error_code: Annotated[Int16, Since(2, 7)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], Since(8)] = []
