"""AlterPartitionReassignments (key 45)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, message


class ReassignablePartition(Message):
    partition_index: Int32 = 0
    replicas: Annotated[list[Int32] | None, NullableSince()] = None


class ReassignableTopic(Message):
    name: str = ""
    partitions: list[ReassignablePartition] = []


@message(45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[bool, Since(1)] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


class ReassignableTopicResponse(Message):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


@message(45, versions=(0, 1), flexible_since=0)
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[bool, Since(1)] = True
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    responses: list[ReassignableTopicResponse] = []
