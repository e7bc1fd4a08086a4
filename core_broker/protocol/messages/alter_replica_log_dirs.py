"""AlterReplicaLogDirs (key 34)."""

from core_broker.protocol.fields import Int16, Int32, Message, message


class AlterReplicaLogDirTopic(Message):
    name: str = ""
    partitions: list[Int32] = []


class AlterReplicaLogDir(Message):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


@message(34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@message(34, versions=(1, 2), flexible_since=2)
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
