"""Keys and values of `__consumer_offsets`."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int8, Int32, Int64, Message, NullableSince, Since, Tag, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


@message(8, versions=(0, 0))
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []
    assignment_epochs: Annotated[list[Int32] | None, NullableSince(), Tag(0)] = []


@message(8, versions=(0, 0), flexible_since=0)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


@message(5, versions=(0, 0))
class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Message):
    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Message):
    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


@message(5, versions=(0, 0), flexible_since=0)
class ConsumerGroupMemberMetadataValue(Message):
    instance_id: Annotated[str | None, NullableSince()] = ""
    rack_id: Annotated[str | None, NullableSince()] = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: Annotated[str | None, NullableSince()] = ""
    rebalance_timeout_ms: Int32 = -1
    server_assignor: Annotated[str | None, NullableSince()] = ""
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, NullableSince(), Tag(0)] = msgspec.field(
        default_factory=ClassicMemberMetadata
    )


@message(3, versions=(0, 0))
class ConsumerGroupMetadataKey(Message):
    group_id: str = ""


@message(3, versions=(0, 0), flexible_since=0)
class ConsumerGroupMetadataValue(Message):
    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, Tag(0)] = 0


@message(4, versions=(0, 0))
class ConsumerGroupPartitionMetadataKey(Message):
    group_id: str = ""


class PartitionMetadata(Message):
    partition: Int32 = 0
    racks: list[str] = []


class TopicMetadata(Message):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: Int32 = 0
    partition_metadata: list[PartitionMetadata] = []


@message(4, versions=(0, 0), flexible_since=0)
class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = []


@message(16, versions=(0, 0))
class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = ""
    regular_expression: str = ""


@message(16, versions=(0, 0), flexible_since=0)
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = []
    version: Int64 = 0
    timestamp: Int64 = 0


@message(7, versions=(0, 0))
class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""


class TopicPartition(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


@message(7, versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = []


@message(6, versions=(0, 0))
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""


@message(6, versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


@message(2, versions=(0, 0))
class GroupMetadataKey(Message):
    group: str = ""


class MemberMetadata(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[Int32, Since(1)] = -1
    session_timeout: Int32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


@message(2, versions=(0, 4), flexible_since=4)
class GroupMetadataValue(Message):
    protocol_type: str = ""
    generation: Int32 = 0
    protocol: Annotated[str | None, NullableSince()] = ""
    leader: Annotated[str | None, NullableSince()] = ""
    current_state_timestamp: Annotated[Int64, Since(2)] = -1
    members: list[MemberMetadata] = []


@message(0, versions=(0, 0))
class LegacyOffsetCommitKey(Message):
    group: str = ""
    topic: str = ""
    partition: Int32 = 0


@message(0, versions=(0, 0))
class LegacyOffsetCommitValue(Message):
    offset: Int64 = 0
    metadata: str = ""
    commit_timestamp: Int64 = 0


@message(1, versions=(0, 0))
class OffsetCommitKey(Message):
    group: str = ""
    topic: str = ""
    partition: Int32 = 0


@message(1, versions=(0, 4), flexible_since=4)
class OffsetCommitValue(Message):
    offset: Int64 = 0
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: str = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Annotated[Int64, Since(1, 1)] = -1
    topic_id: Annotated[Uuid, Since(4), Tag(0)] = ZERO_UUID
