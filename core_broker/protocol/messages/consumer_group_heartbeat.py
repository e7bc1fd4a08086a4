"""ConsumerGroupHeartbeat (key 68)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class TopicPartitions(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


@message(68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: Int32 = 0
    instance_id: Annotated[str | None, NullableSince()] = None
    rack_id: Annotated[str | None, NullableSince()] = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: Annotated[list[str] | None, NullableSince()] = None
    subscribed_topic_regex: Annotated[str | None, Since(1), NullableSince()] = None
    server_assignor: Annotated[str | None, NullableSince()] = None
    topic_partitions: Annotated[list[TopicPartitions] | None, NullableSince()] = None


class ConsumerGroupHeartbeatResponseTopicPartitions(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class Assignment(Message):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = []


@message(68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None
    member_id: Annotated[str | None, NullableSince()] = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Annotated[Assignment | None, NullableSince()] = None
