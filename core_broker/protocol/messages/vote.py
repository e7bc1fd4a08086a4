"""Vote (key 52)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, Tag, UInt16, Uuid
from core_broker.protocol.primitives import ZERO_UUID


class PartitionData(Message):
    """Part of `VoteRequest`."""

    partition_index: Int32 = 0
    replica_epoch: Int32 = 0
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID
    voter_directory_id: Annotated[Uuid, Since(1)] = ZERO_UUID
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    pre_vote: Annotated[bool, Since(2)] = False


class TopicData(Message):
    """Part of `VoteRequest`."""

    topic_name: str = ""
    partitions: list[PartitionData] = []


class VoteRequest(Message):
    """Request of Vote (key 52)."""

    API_KEY = 52
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    cluster_id: Annotated[str | None, NullableSince()] = None
    voter_id: Annotated[Int32, Since(1)] = -1
    topics: list[TopicData] = []


class VoteResponsePartitionData(Message):
    """Part of `VoteResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    vote_granted: bool = False


class VoteResponseTopicData(Message):
    """Part of `VoteResponse`."""

    topic_name: str = ""
    partitions: list[VoteResponsePartitionData] = []


class NodeEndpoint(Message):
    """Part of `VoteResponse`."""

    node_id: Annotated[Int32, Since(1)] = 0
    host: Annotated[str, Since(1)] = ""
    port: Annotated[UInt16, Since(1)] = 0


class VoteResponse(Message):
    """Response of Vote (key 52)."""

    API_KEY = 52
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0

    error_code: Int16 = 0
    topics: list[VoteResponseTopicData] = []
    node_endpoints: Annotated[list[NodeEndpoint], Since(1), Tag(0)] = []
