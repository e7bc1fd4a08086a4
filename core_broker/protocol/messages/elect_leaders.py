"""ElectLeaders (key 43)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since, message


class TopicPartitions(Message):
    topic: str = ""
    partitions: list[Int32] = []


@message(43, versions=(0, 2), flexible_since=2)
class ElectLeadersRequest(Message):
    election_type: Annotated[Int8, Since(1)] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, NullableSince()] = []
    timeout_ms: Int32 = 60000


class PartitionResult(Message):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


class ReplicaElectionResult(Message):
    topic: str = ""
    partition_result: list[PartitionResult] = []


@message(43, versions=(0, 2), flexible_since=2)
class ElectLeadersResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
