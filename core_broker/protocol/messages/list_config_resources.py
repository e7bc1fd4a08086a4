"""ListConfigResources (key 74)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, Since


class ListConfigResourcesRequest(Message):
    """Request of ListConfigResources (key 74)."""

    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    resource_types: Annotated[list[Int8], Since(1)] = []


class ConfigResource(Message):
    """Part of `ListConfigResourcesResponse`."""

    resource_name: str = ""
    resource_type: Annotated[Int8, Since(1)] = 16


class ListConfigResourcesResponse(Message):
    """Response of ListConfigResources (key 74)."""

    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
