"""DeleteGroups (key 42)."""

from core_broker.protocol.fields import Int16, Int32, Message


class DeleteGroupsRequest(Message):
    """Request of DeleteGroups (key 42)."""

    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    groups_names: list[str] = []


class DeletableGroupResult(Message):
    """Part of `DeleteGroupsResponse`."""

    group_id: str = ""
    error_code: Int16 = 0


class DeleteGroupsResponse(Message):
    """Response of DeleteGroups (key 42)."""

    API_KEY = 42
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
