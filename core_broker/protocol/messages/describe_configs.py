"""DescribeConfigs (key 32)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, message


class DescribeConfigsResource(Message):
    resource_type: Int8 = 0
    resource_name: str = ""
    configuration_keys: Annotated[list[str] | None, NullableSince()] = []


@message(32, versions=(1, 4), flexible_since=4)
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: Annotated[bool, Since(3)] = False


class DescribeConfigsSynonym(Message):
    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""
    source: Int8 = 0


class DescribeConfigsResourceResult(Message):
    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[Int8, Since(3)] = 0
    documentation: Annotated[str | None, Since(3), NullableSince()] = ""


class DescribeConfigsResult(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


@message(32, versions=(1, 4), flexible_since=4)
class DescribeConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
