"""Bodies of control records."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since, UInt16, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class EndTxnMarker(Message):
    """`EndTxnMarker`, as Kafka stores it."""

    VERSIONS = (0, 0)

    coordinator_epoch: Int32 = 0


class Voter(Message):
    """Part of `LeaderChangeMessage`."""

    voter_id: Int32 = 0
    voter_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID


class LeaderChangeMessage(Message):
    """`LeaderChangeMessage`, as Kafka stores it."""

    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


class SnapshotHeaderRecord(Message):
    """`SnapshotHeaderRecord`, as Kafka stores it."""

    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0


class SnapshotFooterRecord(Message):
    """`SnapshotFooterRecord`, as Kafka stores it."""

    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    version: Int16 = 0


class KRaftVersionRecord(Message):
    """`KRaftVersionRecord`, as Kafka stores it."""

    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    version: Int16 = 0
    k_raft_version: Int16 = 0


class Endpoint(Message):
    """Part of `VotersRecord`."""

    name: str = ""
    host: str = ""
    port: UInt16 = 0


class KRaftVersionFeature(Message):
    """Part of `VotersRecord`."""

    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class VotersRecordVoter(Message):
    """Part of `VotersRecord`."""

    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = []
    k_raft_version_feature: KRaftVersionFeature = msgspec.field(default_factory=KRaftVersionFeature)


class VotersRecord(Message):
    """`VotersRecord`, as Kafka stores it."""

    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    version: Int16 = 0
    voters: list[VotersRecordVoter] = []
