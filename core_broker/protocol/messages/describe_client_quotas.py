"""DescribeClientQuotas (key 48)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince


class ComponentData(Message):
    """Part of `DescribeClientQuotasRequest`."""

    entity_type: str = ""
    match_type: Int8 = 0
    match: Annotated[str | None, NullableSince()] = ""


class DescribeClientQuotasRequest(Message):
    """Request of DescribeClientQuotas (key 48)."""

    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1

    components: list[ComponentData] = []
    strict: bool = False


class EntityData(Message):
    """Part of `DescribeClientQuotasResponse`."""

    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


class ValueData(Message):
    """Part of `DescribeClientQuotasResponse`."""

    key: str = ""
    value: float = 0.0


class EntryData(Message):
    """Part of `DescribeClientQuotasResponse`."""

    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Message):
    """Response of DescribeClientQuotas (key 48)."""

    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    entries: Annotated[list[EntryData] | None, NullableSince()] = []
