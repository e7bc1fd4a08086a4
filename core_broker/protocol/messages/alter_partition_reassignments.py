"""AlterPartitionReassignments (key 45)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since


class ReassignablePartition(Message):
    """Part of `AlterPartitionReassignmentsRequest`."""

    partition_index: Int32 = 0
    replicas: Annotated[list[Int32] | None, NullableSince()] = None


class ReassignableTopic(Message):
    """Part of `AlterPartitionReassignmentsRequest`."""

    name: str = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Message):
    """Request of AlterPartitionReassignments (key 45)."""

    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[bool, Since(1)] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Message):
    """Part of `AlterPartitionReassignmentsResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


class ReassignableTopicResponse(Message):
    """Part of `AlterPartitionReassignmentsResponse`."""

    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Message):
    """Response of AlterPartitionReassignments (key 45)."""

    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[bool, Since(1)] = True
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    responses: list[ReassignableTopicResponse] = []
