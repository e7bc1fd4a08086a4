"""DescribeGroups (key 15)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since


class DescribeGroupsRequest(Message):
    """Request of DescribeGroups (key 15)."""

    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_SINCE = 5

    groups: list[str] = []
    include_authorized_operations: Annotated[bool, Since(3)] = False


class DescribedGroupMember(Message):
    """Part of `DescribeGroupsResponse`."""

    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(4), NullableSince()] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    """Part of `DescribeGroupsResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, Since(6), NullableSince()] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[Int32, Since(3)] = -2147483648


class DescribeGroupsResponse(Message):
    """Response of DescribeGroups (key 15)."""

    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_SINCE = 5

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    groups: list[DescribedGroup] = []
