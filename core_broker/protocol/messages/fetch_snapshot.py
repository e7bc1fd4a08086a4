"""FetchSnapshot (key 59)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import (
    Int16,
    Int32,
    Int64,
    Message,
    NullableSince,
    Records,
    Since,
    Tag,
    UInt16,
    Uuid,
    message,
)
from core_broker.protocol.primitives import ZERO_UUID


class SnapshotId(Message):
    end_offset: Int64 = 0
    epoch: Int32 = 0


class PartitionSnapshot(Message):
    partition: Int32 = 0
    current_leader_epoch: Int32 = 0
    snapshot_id: SnapshotId = msgspec.field(default_factory=SnapshotId)
    position: Int64 = 0
    replica_directory_id: Annotated[Uuid, Since(1), Tag(0)] = ZERO_UUID


class TopicSnapshot(Message):
    name: str = ""
    partitions: list[PartitionSnapshot] = []


@message(59, versions=(0, 1), flexible_since=0)
class FetchSnapshotRequest(Message):
    cluster_id: Annotated[str | None, NullableSince(), Tag(0)] = None
    replica_id: Int32 = -1
    max_bytes: Int32 = 2147483647
    topics: list[TopicSnapshot] = []


class FetchSnapshotResponseSnapshotId(Message):
    end_offset: Int64 = 0
    epoch: Int32 = 0


class LeaderIdAndEpoch(Message):
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class FetchSnapshotResponsePartitionSnapshot(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    snapshot_id: FetchSnapshotResponseSnapshotId = msgspec.field(default_factory=FetchSnapshotResponseSnapshotId)
    current_leader: Annotated[LeaderIdAndEpoch, Tag(0)] = msgspec.field(default_factory=LeaderIdAndEpoch)
    size: Int64 = 0
    position: Int64 = 0
    unaligned_records: Records = b""


class FetchSnapshotResponseTopicSnapshot(Message):
    name: str = ""
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = []


class NodeEndpoint(Message):
    node_id: Annotated[Int32, Since(1)] = 0
    host: Annotated[str, Since(1)] = ""
    port: Annotated[UInt16, Since(1)] = 0


@message(59, versions=(0, 1), flexible_since=0)
class FetchSnapshotResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[FetchSnapshotResponseTopicSnapshot] = []
    node_endpoints: Annotated[list[NodeEndpoint], Since(1), Tag(0)] = []
