"""BrokerHeartbeat (key 63)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, Tag, Uuid, message


@message(63, versions=(0, 2), flexible_since=0)
class BrokerHeartbeatRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64 = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: Annotated[list[Uuid], Since(1), Tag(0)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, Since(2), NullableSince(), Tag(1)] = None


@message(63, versions=(0, 2), flexible_since=0)
class BrokerHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
