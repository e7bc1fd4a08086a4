"""DescribeQuorum (key 55)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, UInt16, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class PartitionData(Message):
    partition_index: Int32 = 0


class TopicData(Message):
    topic_name: str = ""
    partitions: list[PartitionData] = []


@message(55, versions=(0, 2), flexible_since=0)
class DescribeQuorumRequest(Message):
    topics: list[TopicData] = []


class ReplicaState(Message):
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, Since(2)] = ZERO_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, Since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, Since(1)] = -1


class DescribeQuorumResponsePartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, Since(2), NullableSince()] = ""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class DescribeQuorumResponseTopicData(Message):
    topic_name: str = ""
    partitions: list[DescribeQuorumResponsePartitionData] = []


class Listener(Message):
    name: Annotated[str, Since(2)] = ""
    host: Annotated[str, Since(2)] = ""
    port: Annotated[UInt16, Since(2)] = 0


class Node(Message):
    node_id: Annotated[Int32, Since(2)] = 0
    listeners: Annotated[list[Listener], Since(2)] = []


@message(55, versions=(0, 2), flexible_since=0)
class DescribeQuorumResponse(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, Since(2), NullableSince()] = ""
    topics: list[DescribeQuorumResponseTopicData] = []
    nodes: Annotated[list[Node], Since(2)] = []
