"""Heartbeat (key 12)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since


class HeartbeatRequest(Message):
    """Request of Heartbeat (key 12)."""

    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 4

    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None


class HeartbeatResponse(Message):
    """Response of Heartbeat (key 12)."""

    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 4

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
