"""CreatePartitions (key 37)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince


class CreatePartitionsAssignment(Message):
    """Part of `CreatePartitionsRequest`."""

    broker_ids: list[Int32] = []


class CreatePartitionsTopic(Message):
    """Part of `CreatePartitionsRequest`."""

    name: str = ""
    count: Int32 = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, NullableSince()] = []


class CreatePartitionsRequest(Message):
    """Request of CreatePartitions (key 37)."""

    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_SINCE = 2

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Message):
    """Part of `CreatePartitionsResponse`."""

    name: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None


class CreatePartitionsResponse(Message):
    """Response of CreatePartitions (key 37)."""

    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
