"""EndTxn, key 26, versions 0-5.

Commits or aborts a transaction; the response is sent once the decision is committed, while the markers are still being
written. Below version 5 a delayed EndTxn can end a later transaction of the same epoch: a weakness of the older
protocol, in Kafka, too.

Versions: 2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588); 4 TRANSACTION_ABORTABLE, which is never needed
here; 5 the producer continues with the id and epoch of the response (KIP-890, transaction version 2).
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from core_broker.transactions.transaction import TRANSACTION_V0, TRANSACTION_V2, Producer

FIRST_WITH_PRODUCER_FENCED = 2
FIRST_WITH_EPOCH_BUMP = 5


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    """Commit or abort the transaction."""
    version = TRANSACTION_V2 if context.api_version >= FIRST_WITH_EPOCH_BUMP else TRANSACTION_V0
    try:
        producer = await context.services.transactions.end(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=version,
        )
    except BrokerError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_WITH_PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(error_code=code)
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)
