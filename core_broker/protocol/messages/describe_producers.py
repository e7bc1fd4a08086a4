"""DescribeProducers (key 61)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince


class TopicRequest(Message):
    """Part of `DescribeProducersRequest`."""

    name: str = ""
    partition_indexes: list[Int32] = []


class DescribeProducersRequest(Message):
    """Request of DescribeProducers (key 61)."""

    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    topics: list[TopicRequest] = []


class ProducerState(Message):
    """Part of `DescribeProducersResponse`."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Message):
    """Part of `DescribeProducersResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None
    active_producers: list[ProducerState] = []


class TopicResponse(Message):
    """Part of `DescribeProducersResponse`."""

    name: str = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Message):
    """Response of DescribeProducers (key 61)."""

    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
