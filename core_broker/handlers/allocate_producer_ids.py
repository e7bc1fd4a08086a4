"""AllocateProducerIds, key 67, version 0: a block of producer ids for a broker (KIP-730).

Supported: everything.
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def handle(request: AllocateProducerIdsRequest, context: RequestContext) -> AllocateProducerIdsResponse:
    """Allocate the next block."""
    block = await context.services.controller.allocate_producer_ids(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch
    )
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
