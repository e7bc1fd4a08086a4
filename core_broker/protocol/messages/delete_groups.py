"""DeleteGroups (key 42)."""

from core_broker.protocol.fields import Int16, Int32, Message, message


@message(42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest(Message):
    groups_names: list[str] = []


class DeletableGroupResult(Message):
    group_id: str = ""
    error_code: Int16 = 0


@message(42, versions=(0, 2), flexible_since=2)
class DeleteGroupsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
