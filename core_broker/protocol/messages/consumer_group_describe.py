"""ConsumerGroupDescribe (key 69)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


@message(69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeRequest(Message):
    group_ids: list[str] = []
    include_authorized_operations: bool = False


class TopicPartitions(Message):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[Int32] = []


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []


class Member(Message):
    member_id: str = ""
    instance_id: Annotated[str | None, NullableSince()] = None
    rack_id: Annotated[str | None, NullableSince()] = None
    member_epoch: Int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: Annotated[str | None, NullableSince()] = None
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    member_type: Annotated[Int8, Since(1)] = -1


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: Int32 = -2147483648


@message(69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
