"""Produce, key 0, versions 3-13; 0-2 are announced, since old librdkafka goes by them, and refused politely.

Supported: acks 0, 1 and all; idempotence and transactions; several topics and partitions in one request, each with an
answer of its own. A batch that opens a transaction on a partition is accepted only if the transaction coordinator knows
the partition (KIP-890 part 1); from version 12 on it is added on the way (part 2).
Ignored: nothing.

Versions: 5 log start offset; 8 errors of single records (KIP-467); 9 flexible; 10 current leader (KIP-951);
12 transactions V2; 13 topic ids (KIP-516).
"""

from collections.abc import Coroutine, Iterator
from typing import Any, Final

import msgspec

from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.log.producer_state import VerificationGuard
from core_broker.protocol.fields import decode
from core_broker.protocol.frames import encode_response
from core_broker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from core_broker.protocol.records import CorruptBatch, parse_header

_ACKS_ALL: Final = -1
_ACKS_NONE: Final = 0
_RECORD_BATCHES_SINCE: Final = 3
_IMPLICIT_PARTITIONS_SINCE: Final = 12
_TOPIC_IDS_SINCE: Final = 13
_BATCH_HEADER_BYTES: Final = 61
_ATTRIBUTES_AT: Final = 22
_TRANSACTIONAL: Final = 0x10


class AcksNoneFailed(Exception):
    """A request that wants no answer failed; Kafka closes the connection to tell the client."""


def handle(
    frame: memoryview, body: int, context: RequestContext
) -> bytearray | Coroutine[Any, Any, bytearray | None] | None:
    """Append and answer; a coroutine only when something must be waited for."""
    request = decode(ProduceRequest, context.api_version, frame, body)
    if context.api_version < _RECORD_BATCHES_SINCE:
        return _refuse_all(request, context, ErrorCode.UNSUPPORTED_VERSION)
    if request.acks not in (-1, 0, 1):
        return _refuse_all(request, context, ErrorCode.INVALID_REQUIRED_ACKS)
    if _has_unknown_transactions(request, context):
        # The frame belongs to the connection and is only ours until the first pause.
        copy = memoryview(bytearray(frame))
        return _verify_then_append(decode(ProduceRequest, context.api_version, copy, body), context)
    answer = _append_all(request, context)
    if answer.pending:
        return _finish_later(request, answer, context)
    return _respond(request, answer, context)


class _Answer(msgspec.Struct):
    """The answer of one request and the appends that it still waits for."""

    topics: list[TopicProduceResponse]
    pending: list[tuple[Partition, PartitionProduceResponse, int]]
    """Partition, its answer, last offset."""


def _append_all(
    request: ProduceRequest, context: RequestContext, refused: dict[tuple[str, int], ErrorCode] | None = None
) -> _Answer:
    answer = _Answer([], [])
    for topic in request.topic_data:
        name = topic.name
        if context.api_version >= _TOPIC_IDS_SINCE:
            name = context.services.partitions.topic_name(topic.topic_id) or ""
        results = []
        for data in topic.partition_data:
            error = refused.get((name, data.index), ErrorCode.NONE) if refused else ErrorCode.NONE
            if error != ErrorCode.NONE:
                results.append(PartitionProduceResponse(data.index, error, base_offset=-1))
                continue
            results.append(_append(name, data.index, data.records, request, context, answer))
        answer.topics.append(TopicProduceResponse(topic.name, topic.topic_id, results))
    return answer


def _append(
    topic: str,
    index: int,
    records: bytes | bytearray | memoryview | None,
    request: ProduceRequest,
    context: RequestContext,
    answer: _Answer,
) -> PartitionProduceResponse:
    """Append to one partition; whatever goes wrong becomes the answer of this partition alone."""
    try:
        partition = _leader(topic, index, context)
        if records is None or len(records) < _BATCH_HEADER_BYTES:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "no whole record batch was sent")
        if topic in INTERNAL_TOPICS:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by the broker only")
        assert isinstance(records, memoryview)
        acks_all = request.acks == _ACKS_ALL
        partition.traffic.produce_requests += 1
        result = partition.append(records, acks_all=acks_all)
    except BrokerError as error:
        context.services.metrics.topic_failed_produce(topic)
        return PartitionProduceResponse(index, error.code, base_offset=-1, error_message=error.message)
    response = PartitionProduceResponse(index, 0, result.first_offset, result.timestamp_ms, result.log_start_offset)
    if partition.log.needs_flush or (acks_all and not partition.is_committed(result.last_offset)):
        answer.pending.append((partition, response, result.last_offset))
    return response


def _leader(topic: str, index: int, context: RequestContext) -> Partition:
    if not topic:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    return context.services.partitions.get(topic, index)


async def _finish_later(request: ProduceRequest, answer: _Answer, context: RequestContext) -> bytearray | None:
    """Wait until what was written is on disk (where the topic asks for it) and committed (`acks=all`)."""
    for partition, response, last_offset in answer.pending:
        try:
            if partition.log.needs_flush:
                await context.services.logs.flush_now(partition.log)
            if request.acks == _ACKS_ALL:
                await partition.wait_committed(last_offset, timeout_ms=max(request.timeout_ms, 1))
        except BrokerError as error:
            response.error_code = error.code
            response.base_offset = -1
            response.error_message = error.message
    return _respond(request, answer, context)


def _respond(request: ProduceRequest, answer: _Answer, context: RequestContext) -> bytearray | None:
    if request.acks == _ACKS_NONE:
        if any(result.error_code for topic in answer.topics for result in topic.partition_responses):
            raise AcksNoneFailed
        return None
    version = context.api_version
    return encode_response(
        ProduceResponse(answer.topics), version, context.correlation_id, flexible_header=version >= 9
    )


def _refuse_all(request: ProduceRequest, context: RequestContext, error: ErrorCode) -> bytearray | None:
    topics = [
        TopicProduceResponse(
            topic.name,
            topic.topic_id,
            [PartitionProduceResponse(data.index, error, base_offset=-1) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return _respond(request, _Answer(topics, []), context)


# --- transactions -----------------------------------------------------------------------------------------------------


def _transactional_batches(request: ProduceRequest) -> Iterator[tuple[str, bytes, int, memoryview]]:
    """Topic name, topic id, partition and batches of everything that claims to belong to a transaction."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records is not None and len(records) >= _BATCH_HEADER_BYTES and records[_ATTRIBUTES_AT] & _TRANSACTIONAL:
                assert isinstance(records, memoryview)
                yield topic.name, topic.topic_id, data.index, records


def _has_unknown_transactions(request: ProduceRequest, context: RequestContext) -> bool:
    """Whether a batch would open a transaction on a partition that nobody has told us of."""
    return any(True for _ in _unverified(request, context))


def _unverified(request: ProduceRequest, context: RequestContext) -> Iterator[tuple[Partition, int, int]]:
    """Partition, producer id and epoch of the batches that the coordinator must be asked about."""
    services = context.services
    for name, topic_id, index, records in _transactional_batches(request):
        topic = (services.partitions.topic_name(topic_id) or "") if context.api_version >= _TOPIC_IDS_SINCE else name
        partition = services.partitions.find(topic, index)
        if partition is None:
            continue
        try:
            header = parse_header(records, 0)
        except CorruptBatch:
            continue
        producer = (header.producer_id, header.producer_epoch)
        if partition.log.producers.has_ongoing_transaction(*producer):
            continue
        if not services.transactions.is_partition_in_transaction(
            request.transactional_id or "", *producer, topic, index
        ):
            yield partition, *producer


async def _verify_then_append(request: ProduceRequest, context: RequestContext) -> bytearray | None:
    """Ask the coordinator about each partition that joins a transaction, then append."""
    transactional_id = request.transactional_id
    if transactional_id is None:
        return _refuse_all(request, context, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused: dict[tuple[str, int], ErrorCode] = {}
    guards: list[tuple[Partition, int, VerificationGuard]] = []
    for partition, producer_id, producer_epoch in list(_unverified(request, context)):
        guards.append((partition, producer_id, partition.log.producers.begin_verification(producer_id)))
        error = await context.services.transactions.verify_or_add_partition(
            transactional_id,
            producer_id,
            producer_epoch,
            partition.topic,
            partition.index,
            add=context.api_version >= _IMPLICIT_PARTITIONS_SINCE,
        )
        if error != ErrorCode.NONE:
            refused[partition.topic, partition.index] = _told_to_producer(error, context.api_version)
    for partition, producer_id, guard in guards:
        # A marker that was written while we asked has ended the transaction that we asked about.
        if not partition.log.producers.is_verified(producer_id, guard):
            refused.setdefault((partition.topic, partition.index), ErrorCode.INVALID_TXN_STATE)
    answer = _append_all(request, context, refused)
    if answer.pending:
        return await _finish_later(request, answer, context)
    return _respond(request, answer, context)


def _told_to_producer(error: ErrorCode, version: int) -> ErrorCode:
    """Translate a coordinator's refusal: producers before version 12 know nothing of TRANSACTION_ABORTABLE."""
    retriable = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
    if error in retriable or error == ErrorCode.CONCURRENT_TRANSACTIONS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < _IMPLICIT_PARTITIONS_SINCE - 1:
        return ErrorCode.INVALID_TXN_STATE
    return error
