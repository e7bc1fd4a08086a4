"""InitProducerId, key 22, versions 0-5.

Gives an idempotent producer an id, or a transactional one its id and epoch, fencing its predecessors and aborting their
open transactions.
Supported: KIP-360 (version 3, a producer that recovers from an error sends its current id and epoch).
Ignored: nothing; two-phase commit (version 6, KIP-939) is not supported.

Versions: 4 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588); 5 TRANSACTION_ABORTABLE, which is never needed
here.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from core_broker.transactions.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Producer

FIRST_WITH_PRODUCER_FENCED = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Assign a producer id and epoch."""
    try:
        producer = await context.services.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, expected=_current_producer(request)
        )
    except BrokerError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_WITH_PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)


def _current_producer(request: InitProducerIdRequest) -> Producer | None:
    """The producer's current id and epoch, if it sent them."""
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id}, epoch {request.producer_epoch}: specify both or neither",
        )
    return Producer(request.producer_id, request.producer_epoch) if has_id else None
