"""JoinGroup (key 11)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, message


class JoinGroupRequestProtocol(Message):
    name: str = ""
    metadata: bytes = b""


@message(11, versions=(0, 9), flexible_since=6)
class JoinGroupRequest(Message):
    group_id: str = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(5), NullableSince()] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, Since(8), NullableSince()] = None


class JoinGroupResponseMember(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(5), NullableSince()] = None
    metadata: bytes = b""


@message(11, versions=(0, 9), flexible_since=6)
class JoinGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, Since(7), NullableSince()] = None
    protocol_name: Annotated[str | None, NullableSince(7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, Since(9)] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
