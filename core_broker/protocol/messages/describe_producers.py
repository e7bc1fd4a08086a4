"""DescribeProducers (key 61)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, message


class TopicRequest(Message):
    name: str = ""
    partition_indexes: list[Int32] = []


@message(61, versions=(0, 0), flexible_since=0)
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = []


class ProducerState(Message):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, NullableSince()] = None
    active_producers: list[ProducerState] = []


class TopicResponse(Message):
    name: str = ""
    partitions: list[PartitionResponse] = []


@message(61, versions=(0, 0), flexible_since=0)
class DescribeProducersResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
