"""LeaveGroup (key 13)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, message


class MemberIdentity(Message):
    member_id: Annotated[str, Since(3)] = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = None
    reason: Annotated[str | None, Since(5), NullableSince()] = None


@message(13, versions=(0, 5), flexible_since=4)
class LeaveGroupRequest(Message):
    group_id: str = ""
    member_id: Annotated[str, Since(0, 2)] = ""
    members: Annotated[list[MemberIdentity], Since(3)] = []


class MemberResponse(Message):
    member_id: Annotated[str, Since(3)] = ""
    group_instance_id: Annotated[str | None, Since(3), NullableSince()] = ""
    error_code: Annotated[Int16, Since(3)] = 0


@message(13, versions=(0, 5), flexible_since=4)
class LeaveGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], Since(3)] = []
