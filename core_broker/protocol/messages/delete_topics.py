"""DeleteTopics (key 20)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class DeleteTopicState(Message):
    """Part of `DeleteTopicsRequest`."""

    name: Annotated[str | None, Since(6), NullableSince()] = None
    topic_id: Annotated[Uuid, Since(6)] = ZERO_UUID


class DeleteTopicsRequest(Message):
    """Request of DeleteTopics (key 20)."""

    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE_SINCE = 4

    topics: Annotated[list[DeleteTopicState], Since(6)] = []
    topic_names: Annotated[list[str], Since(0, 5)] = []
    timeout_ms: Int32 = 0


class DeletableTopicResult(Message):
    """Part of `DeleteTopicsResponse`."""

    name: Annotated[str | None, NullableSince(6)] = ""
    topic_id: Annotated[Uuid, Since(6)] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[str | None, Since(5), NullableSince()] = None


class DeleteTopicsResponse(Message):
    """Response of DeleteTopics (key 20)."""

    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE_SINCE = 4

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = []
