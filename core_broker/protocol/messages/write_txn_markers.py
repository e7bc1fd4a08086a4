"""WriteTxnMarkers (key 27)."""

from typing import Annotated

from core_broker.protocol.fields import Int8, Int16, Int32, Int64, Message, Since


class WritableTxnMarkerTopic(Message):
    """Part of `WriteTxnMarkersRequest`."""

    name: str = ""
    partition_indexes: list[Int32] = []


class WritableTxnMarker(Message):
    """Part of `WriteTxnMarkersRequest`."""

    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, Since(2)] = 0


class WriteTxnMarkersRequest(Message):
    """Request of WriteTxnMarkers (key 27)."""

    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 1

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    """Part of `WriteTxnMarkersResponse`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Message):
    """Part of `WriteTxnMarkersResponse`."""

    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Message):
    """Part of `WriteTxnMarkersResponse`."""

    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    """Response of WriteTxnMarkers (key 27)."""

    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 1

    markers: list[WritableTxnMarkerResult] = []
