"""AlterClientQuotas (key 49)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince


class EntityData(Message):
    """Part of `AlterClientQuotasRequest`."""

    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


class OpData(Message):
    """Part of `AlterClientQuotasRequest`."""

    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Message):
    """Part of `AlterClientQuotasRequest`."""

    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Message):
    """Request of AlterClientQuotas (key 49)."""

    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1

    entries: list[EntryData] = []
    validate_only: bool = False


class AlterClientQuotasResponseEntityData(Message):
    """Part of `AlterClientQuotasResponse`."""

    entity_type: str = ""
    entity_name: Annotated[str | None, NullableSince()] = ""


class AlterClientQuotasResponseEntryData(Message):
    """Part of `AlterClientQuotasResponse`."""

    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
    entity: list[AlterClientQuotasResponseEntityData] = []


class AlterClientQuotasResponse(Message):
    """Response of AlterClientQuotas (key 49)."""

    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 1

    throttle_time_ms: Int32 = 0
    entries: list[AlterClientQuotasResponseEntryData] = []
