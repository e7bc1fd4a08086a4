"""AddOffsetsToTxn, key 25, versions 0-4.

Makes the offsets of a consumer group part of a transaction: adds the partition of `__consumer_offsets` that holds the
group. Clients with transaction version 2 do not send it; TxnOffsetCommit version 5 adds the partition itself (KIP-890).

Versions: 2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588).
"""

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from core_broker.transactions.transaction import TRANSACTION_V0, Producer

FIRST_WITH_PRODUCER_FENCED = 2


async def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    """Add the group's offsets partition to the transaction."""
    try:
        await context.services.transactions.add_partitions(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            [(OFFSETS_TOPIC, context.services.groups.partition_of(request.group_id))],
            client_version=TRANSACTION_V0,
        )
    except BrokerError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_WITH_PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
