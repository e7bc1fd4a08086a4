"""DescribeAcls (key 29)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class DescribeAclsRequest(Message):
    """Request of DescribeAcls (key 29)."""

    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2

    resource_type_filter: Int8 = 0
    resource_name_filter: Annotated[str | None, NullableSince()] = ""
    pattern_type_filter: Int8 = 3
    principal_filter: Annotated[str | None, NullableSince()] = ""
    host_filter: Annotated[str | None, NullableSince()] = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclDescription(Message):
    """Part of `DescribeAclsResponse`."""

    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Message):
    """Part of `DescribeAclsResponse`."""

    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    """Response of DescribeAcls (key 29)."""

    API_KEY = 29
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resources: list[DescribeAclsResource] = []
