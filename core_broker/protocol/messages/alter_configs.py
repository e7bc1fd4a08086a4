"""AlterConfigs (key 33)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class AlterableConfig(Message):
    """Part of `AlterConfigsRequest`."""

    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""


class AlterConfigsResource(Message):
    """Part of `AlterConfigsRequest`."""

    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Message):
    """Request of AlterConfigs (key 33)."""

    API_KEY = 33
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    """Part of `AlterConfigsResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resource_type: Int8 = 0
    resource_name: str = ""


class AlterConfigsResponse(Message):
    """Response of AlterConfigs (key 33)."""

    API_KEY = 33
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
