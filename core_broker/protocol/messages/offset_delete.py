"""OffsetDelete (key 47)."""

from core_broker.protocol.fields import Int16, Int32, Message


class OffsetDeleteRequestPartition(Message):
    """Part of `OffsetDeleteRequest`."""

    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Message):
    """Part of `OffsetDeleteRequest`."""

    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    """Request of OffsetDelete (key 47)."""

    API_KEY = 47
    VERSIONS = (0, 0)

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Message):
    """Part of `OffsetDeleteResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Message):
    """Part of `OffsetDeleteResponse`."""

    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    """Response of OffsetDelete (key 47)."""

    API_KEY = 47
    VERSIONS = (0, 0)

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
