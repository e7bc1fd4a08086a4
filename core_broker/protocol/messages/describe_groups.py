"""DescribeGroups (key 15)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, message


@message(15, versions=(0, 6), flexible_since=5)
class DescribeGroupsRequest(Message):
    groups: list[str] = []
    include_authorized_operations: Annotated[bool, Since(3)] = False


class DescribedGroupMember(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, Since(4), NullableSince()] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, Since(6), NullableSince()] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[Int32, Since(3)] = -2147483648


@message(15, versions=(0, 6), flexible_since=5)
class DescribeGroupsResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    groups: list[DescribedGroup] = []
