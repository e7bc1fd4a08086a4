"""ControllerRegistration (key 70)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class Listener(Message):
    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class Feature(Message):
    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(70, versions=(0, 0), flexible_since=0)
class ControllerRegistrationRequest(Message):
    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    listeners: list[Listener] = []
    features: list[Feature] = []


@message(70, versions=(0, 0), flexible_since=0)
class ControllerRegistrationResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
