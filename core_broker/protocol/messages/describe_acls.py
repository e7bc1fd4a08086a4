"""DescribeAcls (key 29)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, message


@message(29, versions=(1, 3), flexible_since=2)
class DescribeAclsRequest(Message):
    resource_type_filter: Int8 = 0
    resource_name_filter: Annotated[str | None, NullableSince()] = ""
    pattern_type_filter: Int8 = 3
    principal_filter: Annotated[str | None, NullableSince()] = ""
    host_filter: Annotated[str | None, NullableSince()] = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclDescription(Message):
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Message):
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 3
    acls: list[AclDescription] = []


@message(29, versions=(1, 3), flexible_since=2)
class DescribeAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resources: list[DescribeAclsResource] = []
