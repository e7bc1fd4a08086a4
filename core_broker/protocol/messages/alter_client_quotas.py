"""AlterClientQuotas (key 49)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, message


class EntityData(Message):
    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


class OpData(Message):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Message):
    entity: list[EntityData] = []
    ops: list[OpData] = []


@message(49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasRequest(Message):
    entries: list[EntryData] = []
    validate_only: bool = False


class EntryResult(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    entity: list[EntityData] = []


@message(49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    entries: list[EntryResult] = []
