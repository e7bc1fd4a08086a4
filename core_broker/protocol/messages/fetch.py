"""Fetch (key 1)."""

from typing import Annotated

import msgspec

from core_broker.protocol.fields import (
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableSince,
    Records,
    Since,
    Tag,
    Uuid,
    message,
)
from core_broker.protocol.primitives import ZERO_UUID


class ReplicaState(Message):
    replica_id: Annotated[Int32, Since(15)] = -1
    replica_epoch: Annotated[Int64, Since(15)] = -1


class FetchPartition(Message):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, Since(9)] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, Since(12)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, Since(17), Tag(0)] = ZERO_UUID
    high_watermark: Annotated[Int64, Since(18), Tag(1)] = 9223372036854775807


class FetchTopic(Message):
    topic: Annotated[str, Since(0, 12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    topic: Annotated[str, Since(7, 12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = ZERO_UUID
    partitions: Annotated[list[Int32], Since(7)] = []


@message(1, versions=(4, 18), flexible_since=12)
class FetchRequest(Message):
    cluster_id: Annotated[str | None, Since(12), NullableSince(), Tag(0)] = None
    replica_id: Annotated[Int32, Since(0, 14)] = -1
    replica_state: Annotated[ReplicaState, Since(15), Tag(1)] = msgspec.field(default_factory=ReplicaState)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2147483647
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, Since(7)] = 0
    session_epoch: Annotated[Int32, Since(7)] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], Since(7)] = []
    rack_id: Annotated[str, Since(11)] = ""


class EpochEndOffset(Message):
    epoch: Annotated[Int32, Since(12)] = -1
    end_offset: Annotated[Int64, Since(12)] = -1


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[Int32, Since(12)] = -1
    leader_epoch: Annotated[Int32, Since(12)] = -1


class SnapshotId(Message):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Message):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, Since(12), Tag(0)] = msgspec.field(default_factory=EpochEndOffset)
    current_leader: Annotated[LeaderIdAndEpoch, Since(12), Tag(1)] = msgspec.field(default_factory=LeaderIdAndEpoch)
    snapshot_id: Annotated[SnapshotId, Since(12), Tag(2)] = msgspec.field(default_factory=SnapshotId)
    aborted_transactions: Annotated[list[AbortedTransaction] | None, NullableSince()] = []
    preferred_read_replica: Annotated[Int32, Since(11)] = -1
    records: Annotated[Records | None, NullableSince()] = None


class FetchableTopicResponse(Message):
    topic: Annotated[str, Since(0, 12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Message):
    node_id: Annotated[Int32, Since(16)] = 0
    host: Annotated[str, Since(16)] = ""
    port: Annotated[Int32, Since(16)] = 0
    rack: Annotated[str | None, Since(16), NullableSince()] = None


@message(1, versions=(4, 18), flexible_since=12)
class FetchResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(7)] = 0
    session_id: Annotated[Int32, Since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], Since(16), Tag(0)] = []
