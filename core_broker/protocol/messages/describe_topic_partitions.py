"""DescribeTopicPartitions (key 75)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class TopicRequest(Message):
    name: str = ""


class Cursor(Message):
    topic_name: str = ""
    partition_index: Int32 = 0


@message(75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = []
    response_partition_limit: Int32 = 2000
    cursor: Annotated[Cursor | None, NullableSince()] = None


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    eligible_leader_replicas: Annotated[list[Int32] | None, NullableSince()] = None
    last_known_elr: Annotated[list[Int32] | None, NullableSince()] = None
    offline_replicas: list[Int32] = []


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: Int16 = 0
    name: Annotated[str | None, NullableSince()] = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: Int32 = -2147483648


class DescribeTopicPartitionsResponseCursor(Message):
    topic_name: str = ""
    partition_index: Int32 = 0


@message(75, versions=(0, 0), flexible_since=0)
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Annotated[DescribeTopicPartitionsResponseCursor | None, NullableSince()] = None
