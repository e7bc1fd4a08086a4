"""JoinGroup (key 11)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since


class JoinGroupRequestProtocol(Message):
    """Part of `JoinGroupRequest`."""

    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Message):
    """Request of JoinGroup (key 11)."""

    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_SINCE = 6

    group_id: str = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(5), NullableSince()] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, Since(8), NullableSince()] = None


class JoinGroupResponseMember(Message):
    """Part of `JoinGroupResponse`."""

    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(5), NullableSince()] = None
    metadata: bytes = b""


class JoinGroupResponse(Message):
    """Response of JoinGroup (key 11)."""

    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_SINCE = 6

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, Since(7), NullableSince()] = None
    protocol_name: Annotated[str | None, NullableSince(7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, Since(9)] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
