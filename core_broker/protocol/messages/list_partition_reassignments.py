"""ListPartitionReassignments (key 46)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince


class ListPartitionReassignmentsTopics(Message):
    """Part of `ListPartitionReassignmentsRequest`."""

    name: str = ""
    partition_indexes: list[Int32] = []


class ListPartitionReassignmentsRequest(Message):
    """Request of ListPartitionReassignments (key 46)."""

    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    timeout_ms: Int32 = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, NullableSince()] = None


class OngoingPartitionReassignment(Message):
    """Part of `ListPartitionReassignmentsResponse`."""

    partition_index: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    removing_replicas: list[Int32] = []


class OngoingTopicReassignment(Message):
    """Part of `ListPartitionReassignmentsResponse`."""

    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Message):
    """Response of ListPartitionReassignments (key 46)."""

    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    topics: list[OngoingTopicReassignment] = []
