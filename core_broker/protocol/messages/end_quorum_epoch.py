"""EndQuorumEpoch (key 54)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Message, NullableSince, Since, Tag, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class ReplicaInfo(Message):
    candidate_id: Annotated[Int32, Since(1)] = 0
    candidate_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID


class PartitionData(Message):
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    preferred_successors: Annotated[list[Int32], Since(0, 0)] = []
    preferred_candidates: Annotated[list[ReplicaInfo], Since(1)] = []


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class LeaderEndpoint(Message):
    name: Annotated[str, Since(1)] = ""
    host: Annotated[str, Since(1)] = ""
    port: Annotated[UInt16, Since(1)] = 0


@message(54, versions=(0, 1), flexible_since=1)
class EndQuorumEpochRequest(Message):
    cluster_id: Annotated[str | None, NullableSince()] = None
    topics: list[TopicData] = []
    leader_endpoints: Annotated[list[LeaderEndpoint], Since(1)] = []


class EndQuorumEpochResponsePartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class EndQuorumEpochResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[EndQuorumEpochResponsePartitionData] = []


class NodeEndpoint(Message):
    node_id: Annotated[Int32, Since(1)] = 0
    host: Annotated[str, Since(1)] = ""
    port: Annotated[UInt16, Since(1)] = 0


@message(54, versions=(0, 1), flexible_since=1)
class EndQuorumEpochResponse(Message):
    error_code: Int16 = 0
    topics: list[EndQuorumEpochResponseTopicData] = []
    node_endpoints: Annotated[list[NodeEndpoint], Since(1), Tag(0)] = []
