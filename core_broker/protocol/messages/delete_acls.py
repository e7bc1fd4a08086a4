"""DeleteAcls (key 31)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class DeleteAclsFilter(Message):
    """Part of `DeleteAclsRequest`."""

    resource_type_filter: Int8 = 0
    resource_name_filter: Annotated[str | None, NullableSince()] = ""
    pattern_type_filter: Int8 = 3
    principal_filter: Annotated[str | None, NullableSince()] = ""
    host_filter: Annotated[str | None, NullableSince()] = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsRequest(Message):
    """Request of DeleteAcls (key 31)."""

    API_KEY = 31
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2

    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Message):
    """Part of `DeleteAclsResponse`."""

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
    """Part of `DeleteAclsResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Message):
    """Response of DeleteAcls (key 31)."""

    API_KEY = 31
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
