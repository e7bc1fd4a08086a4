"""RemoveRaftVoter (key 81)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


@message(81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterRequest(Message):
    cluster_id: Annotated[str | None, NullableSince()] = ""
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID


@message(81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""
