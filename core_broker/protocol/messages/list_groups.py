"""ListGroups (key 16)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, Since, message


@message(16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest(Message):
    states_filter: Annotated[list[str], Since(4)] = []
    types_filter: Annotated[list[str], Since(5)] = []


class ListedGroup(Message):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, Since(4)] = ""
    group_type: Annotated[str, Since(5)] = ""


@message(16, versions=(0, 5), flexible_since=3)
class ListGroupsResponse(Message):
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
