"""WriteTxnMarkers, key 27, versions 1-2.

Sent by a transaction coordinator to the leaders of the partitions of a transaction, and by the tool that aborts hanging
transactions (kafka-transactions.sh abort, KIP-664).

Versions: 2 the transaction version, so that a partition can require the bumped epoch (KIP-1228).
"""

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import write_txn_markers as wire
from core_broker.transactions.markers import MarkerRequest


async def handle(request: wire.WriteTxnMarkersRequest, context: RequestContext) -> wire.WriteTxnMarkersResponse:
    """Write each marker to its partitions."""
    return wire.WriteTxnMarkersResponse([await _write(marker, context) for marker in request.markers])


async def _write(marker: wire.WritableTxnMarker, context: RequestContext) -> wire.WritableTxnMarkerResult:
    wanted = MarkerRequest(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    topics = []
    for topic in marker.topics:
        results = []
        for index in topic.partition_indexes:
            try:
                code = await context.services.transactions.write_marker(topic.name, index, wanted)
            except BrokerError as error:
                code = error.code
            results.append(wire.WritableTxnMarkerPartitionResult(index, code))
        topics.append(wire.WritableTxnMarkerTopicResult(topic.name, results))
    return wire.WritableTxnMarkerResult(marker.producer_id, topics)
