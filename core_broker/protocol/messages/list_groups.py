"""ListGroups (key 16)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, Since


class ListGroupsRequest(Message):
    """Request of ListGroups (key 16)."""

    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3

    states_filter: Annotated[list[str], Since(4)] = []
    types_filter: Annotated[list[str], Since(5)] = []


class ListedGroup(Message):
    """Part of `ListGroupsResponse`."""

    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, Since(4)] = ""
    group_type: Annotated[str, Since(5)] = ""


class ListGroupsResponse(Message):
    """Response of ListGroups (key 16)."""

    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
