"""AlterReplicaLogDirs (key 34)."""

from core_broker.protocol.fields import Int16, Int32, Message


class AlterReplicaLogDirTopic(Message):
    """Part of `AlterReplicaLogDirsRequest`."""

    name: str = ""
    partitions: list[Int32] = []


class AlterReplicaLogDir(Message):
    """Part of `AlterReplicaLogDirsRequest`."""

    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Message):
    """Request of AlterReplicaLogDirs (key 34)."""

    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 2

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Message):
    """Part of `AlterReplicaLogDirsResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Message):
    """Part of `AlterReplicaLogDirsResponse`."""

    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Message):
    """Response of AlterReplicaLogDirs (key 34)."""

    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
