"""Vote (key 52)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, Tag, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class PartitionData(Message):
    partition_index: Int32 = 0
    replica_epoch: Int32 = 0
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID
    voter_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    pre_vote: Annotated[bool, Since(2)] = False


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []


@message(52, versions=(0, 2), flexible_since=0)
class VoteRequest(Message):
    cluster_id: Annotated[str | None, NullableSince()] = None
    voter_id: Annotated[Int32, Since(1)] = -1
    topics: list[TopicData] = []


class VoteResponsePartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    vote_granted: bool = False


class VoteResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[VoteResponsePartitionData] = []


class NodeEndpoint(Message):
    node_id: Annotated[Int32, Since(1)] = 0
    host: Annotated[str, Since(1)] = ""
    port: Annotated[UInt16, Since(1)] = 0


@message(52, versions=(0, 2), flexible_since=0)
class VoteResponse(Message):
    error_code: Int16 = 0
    topics: list[VoteResponseTopicData] = []
    node_endpoints: Annotated[list[NodeEndpoint], Since(1), Tag(0)] = []
