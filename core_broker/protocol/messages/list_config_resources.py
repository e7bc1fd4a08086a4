"""ListConfigResources (key 74)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, Since, message


@message(74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesRequest(Message):
    resource_types: Annotated[list[Int8], Since(1)] = []


class ConfigResource(Message):
    resource_name: str = ""
    resource_type: Annotated[Int8, Since(1)] = 16


@message(74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
