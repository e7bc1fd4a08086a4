"""ConsumerGroupDescribe (key 69)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class ConsumerGroupDescribeRequest(Message):
    """Request of ConsumerGroupDescribe (key 69)."""

    API_KEY = 69
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    group_ids: list[str] = []
    include_authorized_operations: bool = False


class TopicPartitions(Message):
    """Part of `ConsumerGroupDescribeResponse`."""

    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[Int32] = []


class Assignment(Message):
    """Part of `ConsumerGroupDescribeResponse`."""

    topic_partitions: list[TopicPartitions] = []


class Member(Message):
    """Part of `ConsumerGroupDescribeResponse`."""

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
    """Part of `ConsumerGroupDescribeResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: Int32 = -2147483648


class ConsumerGroupDescribeResponse(Message):
    """Response of ConsumerGroupDescribe (key 69)."""

    API_KEY = 69
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
