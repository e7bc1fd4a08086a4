"""WriteTxnMarkers, key 27, versions 1-2.

Sent by a transaction coordinator to the leaders of the partitions of a transaction, and by the tool that aborts hanging
transactions (kafka-transactions.sh abort, KIP-664).

A marker of a coordinator that was replaced is refused with TRANSACTION_COORDINATOR_FENCED. Markers are written only to
partitions that this broker leads; the response is sent when they are committed. In `__consumer_offsets` a marker also
commits or drops the pending offsets of its producer.

Versions: 2 the transaction version, so that a partition can require the bumped epoch (KIP-1228).
"""

import asyncio

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import write_txn_markers as wire
from core_broker.transactions.markers import MarkerRequest


async def handle(request: wire.WriteTxnMarkersRequest, context: RequestContext) -> wire.WriteTxnMarkersResponse:
    """Write each marker to its partitions."""
    # All are appended before the first wait, so a partition whose replicas are slow does not delay the others.
    codes = await asyncio.gather(
        *(
            _write(marker, topic.name, index, context)
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        )
    )
    remaining = iter(codes)
    return wire.WriteTxnMarkersResponse(
        [
            wire.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    wire.WritableTxnMarkerTopicResult(
                        topic.name,
                        [
                            wire.WritableTxnMarkerPartitionResult(index, next(remaining))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


async def _write(marker: wire.WritableTxnMarker, topic: str, index: int, context: RequestContext) -> ErrorCode:
    return await context.services.local_markers.write(
        topic,
        index,
        MarkerRequest(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        ),
    )
