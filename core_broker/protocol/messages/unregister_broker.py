"""UnregisterBroker (key 64)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince


class UnregisterBrokerRequest(Message):
    """Request of UnregisterBroker (key 64)."""

    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    broker_id: Int32 = 0


class UnregisterBrokerResponse(Message):
    """Response of UnregisterBroker (key 64)."""

    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
