"""UpdateRaftVoter (key 82)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Tag, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class Listener(Message):
    name: str = ""
    host: str = ""
    port: UInt16 = 0


class KRaftVersionFeature(Message):
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(82, versions=(0, 0), flexible_since=0)
class UpdateRaftVoterRequest(Message):
    cluster_id: Annotated[str | None, NullableSince()] = ""
    current_leader_epoch: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    kraft_version_feature: KRaftVersionFeature = msgspec.field(default_factory=KRaftVersionFeature)


class CurrentLeader(Message):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    host: str = ""
    port: Int32 = 0


@message(82, versions=(0, 0), flexible_since=0)
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    current_leader: Annotated[CurrentLeader, Tag(0)] = msgspec.field(default_factory=CurrentLeader)
