"""The quorum-state file of a voter of the metadata quorum."""

from typing import Annotated

from core_broker.protocol.fields import Int32, Int64, Message, NullableSince, Since, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class Voter(Message):
    voter_id: Annotated[Int32, Since(0, 0)] = 0


@message(versions=(0, 1), flexible_since=0)
class QuorumStateData(Message):
    cluster_id: Annotated[str, Since(0, 0)] = ""
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    voted_id: Int32 = -1
    voted_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID
    applied_offset: Annotated[Int64, Since(0, 0)] = 0
    current_voters: Annotated[list[Voter] | None, Since(0, 0), NullableSince()] = []
