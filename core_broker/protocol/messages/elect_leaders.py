"""ElectLeaders (key 43)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Message, NullableSince, Since


class TopicPartitions(Message):
    """Part of `ElectLeadersRequest`."""

    topic: str = ""
    partitions: list[Int32] = []


class ElectLeadersRequest(Message):
    """Request of ElectLeaders (key 43)."""

    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    election_type: Annotated[Int8, Since(1)] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, NullableSince()] = []
    timeout_ms: Int32 = 60000


class PartitionResult(Message):
    """Part of `ElectLeadersResponse`."""

    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = ""


class ReplicaElectionResult(Message):
    """Part of `ElectLeadersResponse`."""

    topic: str = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Message):
    """Response of ElectLeaders (key 43)."""

    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
