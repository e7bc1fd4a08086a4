"""AssignReplicasToDirs (key 73)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Uuid, message
from core_broker.protocol.primitives import ZERO_UUID


class PartitionData(Message):
    partition_index: Int32 = 0


class TopicData(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class DirectoryData(Message):
    id: Uuid = ZERO_UUID
    topics: list[TopicData] = []


@message(73, versions=(0, 0), flexible_since=0)
class AssignReplicasToDirsRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    directories: list[DirectoryData] = []


class AssignReplicasToDirsResponsePartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class AssignReplicasToDirsResponseTopicData(Message):
    topic_id: Uuid = ZERO_UUID
    partitions: list[AssignReplicasToDirsResponsePartitionData] = []


class AssignReplicasToDirsResponseDirectoryData(Message):
    id: Uuid = ZERO_UUID
    topics: list[AssignReplicasToDirsResponseTopicData] = []


@message(73, versions=(0, 0), flexible_since=0)
class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    directories: list[AssignReplicasToDirsResponseDirectoryData] = []
