"""CreatePartitions (key 37)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, message


class CreatePartitionsAssignment(Message):
    broker_ids: list[Int32] = []


class CreatePartitionsTopic(Message):
    name: str = ""
    count: Int32 = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, NullableSince()] = []


@message(37, versions=(0, 3), flexible_since=2)
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Message):
    name: str = ""
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None


@message(37, versions=(0, 3), flexible_since=2)
class CreatePartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
