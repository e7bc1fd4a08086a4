"""Bodies of control records."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


@message(versions=(0, 0))
class EndTxnMarker(Message):
    coordinator_epoch: Int32 = 0


class Voter(Message):
    voter_id: Int32 = 0
    voter_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID


@message(versions=(0, 1), flexible_since=0)
class LeaderChangeMessage(Message):
    version: Int16 = 0
    leader_id: Int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


@message(versions=(0, 0), flexible_since=0)
class SnapshotHeaderRecord(Message):
    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0


@message(versions=(0, 0), flexible_since=0)
class SnapshotFooterRecord(Message):
    version: Int16 = 0


@message(versions=(0, 0), flexible_since=0)
class KRaftVersionRecord(Message):
    version: Int16 = 0
    k_raft_version: Int16 = 0


class Endpoint(Message):
    name: str = ""
    host: str = ""
    port: UInt16 = 0


class KRaftVersionFeature(Message):
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class VotersRecordVoter(Message):
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = []
    k_raft_version_feature: KRaftVersionFeature = msgspec.field(default_factory=KRaftVersionFeature)


@message(versions=(0, 0), flexible_since=0)
class VotersRecord(Message):
    version: Int16 = 0
    voters: list[VotersRecordVoter] = []
