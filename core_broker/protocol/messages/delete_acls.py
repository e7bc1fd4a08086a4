"""DeleteAcls (key 31)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, message


class DeleteAclsFilter(Message):
    resource_type_filter: Int8 = 0
    resource_name_filter: Annotated[str | None, NullableSince()] = ""
    pattern_type_filter: Int8 = 3
    principal_filter: Annotated[str | None, NullableSince()] = ""
    host_filter: Annotated[str | None, NullableSince()] = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(31, versions=(1, 3), flexible_since=2)
class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 3
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsFilterResult(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


@message(31, versions=(1, 3), flexible_since=2)
class DeleteAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
