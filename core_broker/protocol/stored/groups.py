"""Keys and values of `__consumer_offsets`."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int32, Int64, Message, NullableSince, Since, Tag, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """`ConsumerGroupCurrentMemberAssignmentKey`, as Kafka stores it."""

    API_KEY = 8
    VERSIONS = (0, 0)

    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Message):
    """Part of `ConsumerGroupCurrentMemberAssignmentValue`."""

    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []
    assignment_epochs: Annotated[list[Int32] | None, NullableSince(), Tag(0)] = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """`ConsumerGroupCurrentMemberAssignmentValue`, as Kafka stores it."""

    API_KEY = 8
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


class ConsumerGroupMemberMetadataKey(Message):
    """`ConsumerGroupMemberMetadataKey`, as Kafka stores it."""

    API_KEY = 5
    VERSIONS = (0, 0)

    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Message):
    """Part of `ConsumerGroupMemberMetadataValue`."""

    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Message):
    """Part of `ConsumerGroupMemberMetadataValue`."""

    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


class ConsumerGroupMemberMetadataValue(Message):
    """`ConsumerGroupMemberMetadataValue`, as Kafka stores it."""

    API_KEY = 5
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    instance_id: Annotated[str | None, NullableSince()] = ""
    rack_id: Annotated[str | None, NullableSince()] = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: Annotated[str | None, NullableSince()] = ""
    rebalance_timeout_ms: Int32 = -1
    server_assignor: Annotated[str | None, NullableSince()] = ""
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, NullableSince(), Tag(0)] = None


class ConsumerGroupMetadataKey(Message):
    """`ConsumerGroupMetadataKey`, as Kafka stores it."""

    API_KEY = 3
    VERSIONS = (0, 0)

    group_id: str = ""


class ConsumerGroupMetadataValue(Message):
    """`ConsumerGroupMetadataValue`, as Kafka stores it."""

    API_KEY = 3
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, Tag(0)] = 0


class ConsumerGroupPartitionMetadataKey(Message):
    """`ConsumerGroupPartitionMetadataKey`, as Kafka stores it."""

    API_KEY = 4
    VERSIONS = (0, 0)

    group_id: str = ""


class PartitionMetadata(Message):
    """Part of `ConsumerGroupPartitionMetadataValue`."""

    partition: Int32 = 0
    racks: list[str] = []


class TopicMetadata(Message):
    """Part of `ConsumerGroupPartitionMetadataValue`."""

    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: Int32 = 0
    partition_metadata: list[PartitionMetadata] = []


class ConsumerGroupPartitionMetadataValue(Message):
    """`ConsumerGroupPartitionMetadataValue`, as Kafka stores it."""

    API_KEY = 4
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    topics: list[TopicMetadata] = []


class ConsumerGroupRegularExpressionKey(Message):
    """`ConsumerGroupRegularExpressionKey`, as Kafka stores it."""

    API_KEY = 16
    VERSIONS = (0, 0)

    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Message):
    """`ConsumerGroupRegularExpressionValue`, as Kafka stores it."""

    API_KEY = 16
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    topics: list[str] = []
    version: Int64 = 0
    timestamp: Int64 = 0


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """`ConsumerGroupTargetAssignmentMemberKey`, as Kafka stores it."""

    API_KEY = 7
    VERSIONS = (0, 0)

    group_id: str = ""
    member_id: str = ""


class TopicPartition(Message):
    """Part of `ConsumerGroupTargetAssignmentMemberValue`."""

    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """`ConsumerGroupTargetAssignmentMemberValue`, as Kafka stores it."""

    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    topic_partitions: list[TopicPartition] = []


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """`ConsumerGroupTargetAssignmentMetadataKey`, as Kafka stores it."""

    API_KEY = 6
    VERSIONS = (0, 0)

    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """`ConsumerGroupTargetAssignmentMetadataValue`, as Kafka stores it."""

    API_KEY = 6
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


class GroupMetadataKey(Message):
    """`GroupMetadataKey`, as Kafka stores it."""

    API_KEY = 2
    VERSIONS = (0, 0)

    group: str = ""


class MemberMetadata(Message):
    """Part of `GroupMetadataValue`."""

    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[Int32, Since(1)] = -1
    session_timeout: Int32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Message):
    """`GroupMetadataValue`, as Kafka stores it."""

    API_KEY = 2
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 4

    protocol_type: str = ""
    generation: Int32 = 0
    protocol: Annotated[str | None, NullableSince()] = ""
    leader: Annotated[str | None, NullableSince()] = ""
    current_state_timestamp: Annotated[Int64, Since(2)] = -1
    members: list[MemberMetadata] = []


class LegacyOffsetCommitKey(Message):
    """`LegacyOffsetCommitKey`, as Kafka stores it."""

    API_KEY = 0
    VERSIONS = (0, 0)

    group: str = ""
    topic: str = ""
    partition: Int32 = 0


class LegacyOffsetCommitValue(Message):
    """`LegacyOffsetCommitValue`, as Kafka stores it."""

    API_KEY = 0
    VERSIONS = (0, 0)

    offset: Int64 = 0
    metadata: str = ""
    commit_timestamp: Int64 = 0


class OffsetCommitKey(Message):
    """`OffsetCommitKey`, as Kafka stores it."""

    API_KEY = 1
    VERSIONS = (0, 0)

    group: str = ""
    topic: str = ""
    partition: Int32 = 0


class OffsetCommitValue(Message):
    """`OffsetCommitValue`, as Kafka stores it."""

    API_KEY = 1
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 4

    offset: Int64 = 0
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: str = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Annotated[Int64, Since(1, 1)] = -1
    topic_id: Annotated[Uuid, Since(4), Tag(0)] = ZERO_UUID
