"""UnregisterBroker (key 64)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, message


@message(64, versions=(0, 0), flexible_since=0)
class UnregisterBrokerRequest(Message):
    broker_id: Int32 = 0


@message(64, versions=(0, 0), flexible_since=0)
class UnregisterBrokerResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
