"""Heartbeat (key 12)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, message


@message(12, versions=(0, 4), flexible_since=4)
class HeartbeatRequest(Message):
    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None


@message(12, versions=(0, 4), flexible_since=4)
class HeartbeatResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
