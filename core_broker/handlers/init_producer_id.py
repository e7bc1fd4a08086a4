"""InitProducerId (22), versions 0-5.

Gives an idempotent producer an id, or a transactional one its id and epoch, fencing its predecessors and aborting what
they left open. Supported: KIP-360 (v3, a producer that goes on after an error says what it holds). Ignored: nothing;
two-phase commit (v6, KIP-939) is not offered. Version notes: v4 may answer PRODUCER_FENCED, before it is
INVALID_PRODUCER_EPOCH (KIP-588); v5 may answer TRANSACTION_ABORTABLE, which we never need here.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from core_broker.transactions.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Producer

FIRST_WITH_PRODUCER_FENCED = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """Answer one InitProducerId request."""
    try:
        producer = await context.services.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, expected=_expected(request)
        )
    except BrokerError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_WITH_PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)


def _expected(request: InitProducerIdRequest) -> Producer | None:
    """What the producer believes to hold; id and epoch come together or not at all."""
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id} and epoch {request.producer_epoch}: give both or neither",
        )
    return Producer(request.producer_id, request.producer_epoch) if has_id else None
