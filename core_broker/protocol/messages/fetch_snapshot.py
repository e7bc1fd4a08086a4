"""FetchSnapshot (key 59)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Records, Since, Tag, UInt16, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class SnapshotId(Message):
    """Part of `FetchSnapshotRequest`."""

    end_offset: Int64 = 0
    epoch: Int32 = 0


class PartitionSnapshot(Message):
    """Part of `FetchSnapshotRequest`."""

    partition: Int32 = 0
    current_leader_epoch: Int32 = 0
    snapshot_id: SnapshotId = msgspec.field(default_factory=SnapshotId)
    position: Int64 = 0
    replica_directory_id: Annotated[Uuid, Since(1), Tag(0)] = ZERO_UUID


class TopicSnapshot(Message):
    """Part of `FetchSnapshotRequest`."""

    name: str = ""
    partitions: list[PartitionSnapshot] = []


class FetchSnapshotRequest(Message):
    """Request of FetchSnapshot (key 59)."""

    API_KEY = 59
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    cluster_id: Annotated[str | None, NullableSince(), Tag(0)] = None
    replica_id: Int32 = -1
    max_bytes: Int32 = 2147483647
    topics: list[TopicSnapshot] = []


class FetchSnapshotResponseSnapshotId(Message):
    """Part of `FetchSnapshotResponse`."""

    end_offset: Int64 = 0
    epoch: Int32 = 0


class LeaderIdAndEpoch(Message):
    """Part of `FetchSnapshotResponse`."""

    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class FetchSnapshotResponsePartitionSnapshot(Message):
    """Part of `FetchSnapshotResponse`."""

    index: Int32 = 0
    error_code: Int16 = 0
    snapshot_id: FetchSnapshotResponseSnapshotId = msgspec.field(default_factory=FetchSnapshotResponseSnapshotId)
    current_leader: Annotated[LeaderIdAndEpoch, Tag(0)] = msgspec.field(default_factory=LeaderIdAndEpoch)
    size: Int64 = 0
    position: Int64 = 0
    unaligned_records: Records = b""


class FetchSnapshotResponseTopicSnapshot(Message):
    """Part of `FetchSnapshotResponse`."""

    name: str = ""
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = []


class NodeEndpoint(Message):
    """Part of `FetchSnapshotResponse`."""

    node_id: Annotated[Int32, Since(1)] = 0
    host: Annotated[str, Since(1)] = ""
    port: Annotated[UInt16, Since(1)] = 0


class FetchSnapshotResponse(Message):
    """Response of FetchSnapshot (key 59)."""

    API_KEY = 59
    VERSIONS = (0, 1)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[FetchSnapshotResponseTopicSnapshot] = []
    node_endpoints: Annotated[list[NodeEndpoint], Since(1), Tag(0)] = []
