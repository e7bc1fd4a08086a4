"""DeleteRecords (key 21)."""

from core_broker.protocol.fields import Int16, Int32, Int64, Message


class DeleteRecordsPartition(Message):
    """Part of `DeleteRecordsRequest`."""

    partition_index: Int32 = 0
    offset: Int64 = 0


class DeleteRecordsTopic(Message):
    """Part of `DeleteRecordsRequest`."""

    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Message):
    """Request of DeleteRecords (key 21)."""

    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Message):
    """Part of `DeleteRecordsResponse`."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Message):
    """Part of `DeleteRecordsResponse`."""

    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    """Response of DeleteRecords (key 21)."""

    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 2

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
