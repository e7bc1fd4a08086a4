"""DescribeClientQuotas (key 48)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, message


class ComponentData(Message):
    entity_type: str = ""
    match_type: Int8 = 0
    match: Annotated[str | None, NullableSince()] = ""


@message(48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = []
    strict: bool = False


class EntityData(Message):
    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


class ValueData(Message):
    key: str = ""
    value: float = 0.0


class EntryData(Message):
    entity: list[EntityData] = []
    values: list[ValueData] = []


@message(48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    entries: Annotated[list[EntryData] | None, NullableSince()] = []
