"""AddPartitionsToTxn, key 24, versions 0-5.

Makes partitions part of a transaction: all of them or none.

Versions: 0-3 one transaction, sent by clients of the older protocol; 2 PRODUCER_FENCED instead of
INVALID_PRODUCER_EPOCH (KIP-588); 4 several transactions, sent by brokers, with `verify_only` to check whether the
partitions were added (KIP-890); 5 TRANSACTION_ABORTABLE instead of INVALID_TXN_STATE.
"""

import asyncio

from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import add_partitions_to_txn as wire
from core_broker.transactions.transaction import TRANSACTION_V0, TRANSACTION_V2, Producer, TopicPartition

FIRST_WITH_PRODUCER_FENCED = 2
FIRST_BATCHED = 4
FIRST_WITH_TRANSACTION_ABORTABLE = 5


async def handle(request: wire.AddPartitionsToTxnRequest, context: RequestContext) -> wire.AddPartitionsToTxnResponse:
    """Add the partitions to each transaction, or verify them."""
    if context.api_version < FIRST_BATCHED:
        only = wire.AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return wire.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _results(only, context))
    # Concurrently: they are of different producers, which must not wait for each other's writes.
    results = await asyncio.gather(*(_results(transaction, context) for transaction in request.transactions))
    return wire.AddPartitionsToTxnResponse(
        results_by_transaction=[
            wire.AddPartitionsToTxnResult(transaction.transactional_id, topics)
            for transaction, topics in zip(request.transactions, results, strict=True)
        ]
    )


async def _results(
    transaction: wire.AddPartitionsToTxnTransaction, context: RequestContext
) -> list[wire.AddPartitionsToTxnTopicResult]:
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    errors = await _errors(transaction, partitions, context)
    version = context.api_version
    return [
        wire.AddPartitionsToTxnTopicResult(
            topic.name,
            [
                wire.AddPartitionsToTxnPartitionResult(index, _for_version(errors[topic.name, index], version))
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


async def _errors(
    transaction: wire.AddPartitionsToTxnTransaction, partitions: list[TopicPartition], context: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    refused = _refused(partitions, context)
    if refused:
        # All or nothing: the other partitions are not added, which OPERATION_NOT_ATTEMPTED says.
        return {at: refused.get(at, ErrorCode.OPERATION_NOT_ATTEMPTED) for at in partitions}
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.services.transactions
    try:
        if transaction.verify_only:
            return coordinator.verify_partitions(transaction.transactional_id, producer, partitions)
        # Brokers add partitions only for producers of the newer protocol; all others add them themselves.
        version = TRANSACTION_V2 if context.api_version >= FIRST_BATCHED else TRANSACTION_V0
        await coordinator.add_partitions(transaction.transactional_id, producer, partitions, client_version=version)
    except BrokerError as error:
        return dict.fromkeys(partitions, error.code)
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _refused(partitions: list[TopicPartition], context: RequestContext) -> dict[TopicPartition, ErrorCode]:
    """The partitions that the client may not write to, and those that do not exist."""
    topics = context.services.metadata.image.topics
    # Brokers have checked the client, and add partitions of internal topics for it.
    may_write = may_use_topics(context) if context.api_version < FIRST_BATCHED else None
    refused = {}
    for topic, index in partitions:
        if may_write is not None and (topic in INTERNAL_TOPICS or not may_write(topic)):
            refused[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic not in topics or index not in topics[topic].partitions:
            refused[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _for_version(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and version < FIRST_WITH_PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_WITH_TRANSACTION_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return code
