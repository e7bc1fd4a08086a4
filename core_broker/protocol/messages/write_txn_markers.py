"""WriteTxnMarkers (key 27)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, Since, message


class WritableTxnMarkerTopic(Message):
    name: str = ""
    partition_indexes: list[Int32] = []


class WritableTxnMarker(Message):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, Since(2)] = 0


@message(27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Message):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Message):
    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


@message(27, versions=(1, 2), flexible_since=1)
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = []
