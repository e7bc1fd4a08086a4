"""AddRaftVoter (key 80)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class Listener(Message):
    name: str = ""
    host: str = ""
    port: UInt16 = 0


@message(80, versions=(0, 1), flexible_since=0)
class AddRaftVoterRequest(Message):
    cluster_id: Annotated[str | None, NullableSince()] = ""
    timeout_ms: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: Annotated[bool, Since(1)] = True


@message(80, versions=(0, 1), flexible_since=0)
class AddRaftVoterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
