"""CreateAcls (key 30)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class AclCreation(Message):
    """Part of `CreateAclsRequest`."""

    resource_type: Int8 = 0
    resource_name: str = ""
    resource_pattern_type: Int8 = 3
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class CreateAclsRequest(Message):
    """Request of CreateAcls (key 30)."""

    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2

    creations: list[AclCreation] = []


class AclCreationResult(Message):
    """Part of `CreateAclsResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


class CreateAclsResponse(Message):
    """Response of CreateAcls (key 30)."""

    API_KEY = 30
    VERSIONS = (1, 3)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
