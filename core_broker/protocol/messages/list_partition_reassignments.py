"""ListPartitionReassignments (key 46)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, message


class ListPartitionReassignmentsTopics(Message):
    name: str = ""
    partition_indexes: list[Int32] = []


@message(46, versions=(0, 0), flexible_since=0)
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: Int32 = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, NullableSince()] = None


class OngoingPartitionReassignment(Message):
    partition_index: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    removing_replicas: list[Int32] = []


class OngoingTopicReassignment(Message):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []


@message(46, versions=(0, 0), flexible_since=0)
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    topics: list[OngoingTopicReassignment] = []
