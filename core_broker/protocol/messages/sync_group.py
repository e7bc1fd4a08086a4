"""SyncGroup (key 14)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, message


class SyncGroupRequestAssignment(Message):
    member_id: str = ""
    assignment: bytes = b""


@message(14, versions=(0, 5), flexible_since=4)
class SyncGroupRequest(Message):
    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None
    protocol_type: Annotated[str | None, Since(5), NullableSince()] = None
    protocol_name: Annotated[str | None, Since(5), NullableSince()] = None
    assignments: list[SyncGroupRequestAssignment] = []


@message(14, versions=(0, 5), flexible_since=4)
class SyncGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, Since(5), NullableSince()] = None
    protocol_name: Annotated[str | None, Since(5), NullableSince()] = None
    assignment: bytes = b""
