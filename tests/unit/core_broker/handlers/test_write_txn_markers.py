import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.transaction_handler_world import TransactionHandlers


@pytest.mark.parametrize("version", [1, 2])
async def test_markers_are_written_and_each_partition_answers_for_itself(
    handlers: TransactionHandlers, version: int
) -> None:
    topics = [WritableTxnMarkerTopic("orders", [0, 7]), WritableTxnMarkerTopic("nowhere", [0])]
    request = WriteTxnMarkersRequest([WritableTxnMarker(77, 3, False, topics, 1)])
    answer = await handlers.call(request, WriteTxnMarkersResponse, version)
    (marker,) = answer.markers
    assert marker.producer_id == 77
    found = {
        (topic.name, result.partition_index): result.error_code
        for topic in marker.topics
        for result in topic.partitions
    }
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == {("orders", 0): 0, ("orders", 7): missing, ("nowhere", 0): missing}
    assert handlers.world.partition("orders").log.end_offset == 1
