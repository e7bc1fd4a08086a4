"""BrokerRegistration (key 62)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, UInt16, Uuid, message
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


@message(62, versions=(0, 4), flexible_since=0)
class BrokerRegistrationRequest(Message):
    broker_id: Int32 = 0
    cluster_id: str = ""
    incarnation_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    features: list[Feature] = []
    rack: Annotated[str | None, NullableSince()] = ""
    is_migrating_zk_broker: Annotated[bool, Since(1)] = False
    log_dirs: Annotated[list[Uuid], Since(2)] = []
    previous_broker_epoch: Annotated[Int64, Since(3)] = -1


@message(62, versions=(0, 4), flexible_since=0)
class BrokerRegistrationResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
