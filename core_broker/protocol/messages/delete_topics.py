"""DeleteTopics (key 20)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class DeleteTopicState(Message):
    name: Annotated[str | None, Since(6), NullableSince()] = None
    topic_id: Annotated[Uuid, Since(6)] = ZERO_UUID


@message(20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest(Message):
    topics: Annotated[list[DeleteTopicState], Since(6)] = []
    topic_names: Annotated[list[str], Since(0, 5)] = []
    timeout_ms: Int32 = 0


class DeletableTopicResult(Message):
    name: Annotated[str | None, NullableSince(6)] = ""
    topic_id: Annotated[Uuid, Since(6)] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[str | None, Since(5), NullableSince()] = None


@message(20, versions=(1, 6), flexible_since=4)
class DeleteTopicsResponse(Message):
    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = []
