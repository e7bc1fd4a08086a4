"""IncrementalAlterConfigs (key 44)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class AlterableConfig(Message):
    """Part of `IncrementalAlterConfigsRequest`."""

    name: str = ""
    config_operation: Int8 = 0
    value: Annotated[str | None, NullableSince()] = ""


class AlterConfigsResource(Message):
    """Part of `IncrementalAlterConfigsRequest`."""

    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class IncrementalAlterConfigsRequest(Message):
    """Request of IncrementalAlterConfigs (key 44)."""

    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    """Part of `IncrementalAlterConfigsResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resource_type: Int8 = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponse(Message):
    """Response of IncrementalAlterConfigs (key 44)."""

    API_KEY = 44
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
