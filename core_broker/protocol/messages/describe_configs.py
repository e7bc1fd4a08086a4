"""DescribeConfigs (key 32)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since


class DescribeConfigsResource(Message):
    """Part of `DescribeConfigsRequest`."""

    resource_type: Int8 = 0
    resource_name: str = ""
    configuration_keys: Annotated[list[str] | None, NullableSince()] = []


class DescribeConfigsRequest(Message):
    """Request of DescribeConfigs (key 32)."""

    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE_SINCE = 4

    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: Annotated[bool, Since(3)] = False


class DescribeConfigsSynonym(Message):
    """Part of `DescribeConfigsResponse`."""

    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""
    source: Int8 = 0


class DescribeConfigsResourceResult(Message):
    """Part of `DescribeConfigsResponse`."""

    name: str = ""
    value: Annotated[str | None, NullableSince()] = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[Int8, Since(3)] = 0
    documentation: Annotated[str | None, Since(3), NullableSince()] = ""


class DescribeConfigsResult(Message):
    """Part of `DescribeConfigsResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Message):
    """Response of DescribeConfigs (key 32)."""

    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE_SINCE = 4

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
