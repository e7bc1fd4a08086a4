"""Produce, key 0, versions 0-13.

Supported: acks 0, 1 and all; idempotence and transactions; several topics and partitions in one request, each with its
own result. A batch that opens a transaction on a partition is accepted only if the transaction coordinator knows the
partition (KIP-890 part 1); from version 12 on it is added implicitly (part 2). Records of guarded topics must have
registered schema ids; records of other topics are not opened for that.
Ignored: nothing.

Versions: 0-2 are advertised because old librdkafka depends on it, and answered with UNSUPPORTED_VERSION; 5 log start
offset; 8 errors of individual records (KIP-467); 9 flexible; 10 current leader (KIP-951);
11 TRANSACTION_ABORTABLE (KIP-890 part 1); 12 transactions V2; 13 topic ids (KIP-516).
"""

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Final

import msgspec

from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.partition import Partition
from core_broker.errors import RECORD_ERRORS_MAX, BrokerError, ErrorCode, RecordsRefused
from core_broker.handlers.access import may_use_topics, may_use_transactions
from core_broker.handlers.api import Appended
from core_broker.handlers.context import RequestContext
from core_broker.handlers.current_leader import LEADER_CHANGED, NO_ENDPOINTS, encode_endpoints, find_leader
from core_broker.handlers.produce_wire import (
    TOPIC_IDS_SINCE,
    PartitionResult,
    ProduceCall,
    TopicRecords,
    TopicResult,
    read_request,
    reject_all,
    write_response,
)
from core_broker.log.producer_state import VerificationGuard
from core_broker.protocol.records import HEADER_BYTES, CorruptBatch, parse_header
from core_broker.schema_guard.guard import Inspection

_ACKS_ALL: Final = -1
_ACKS_NONE: Final = 0
_RECORD_BATCHES_SINCE: Final = 3
_CURRENT_LEADER_SINCE: Final = 10
_ABORTABLE_SINCE: Final = 11
_IMPLICIT_PARTITIONS_SINCE: Final = 12
_ATTRIBUTES_AT: Final = 22
_TRANSACTIONAL: Final = 0x10
_TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Answered with NOT_ENOUGH_REPLICAS, after which producers of every version send the same batch again."""


class AcksNoneFailed(Exception):
    """A request that expects no response failed; as in Kafka, the connection is closed to signal it."""


def handle(
    frame: memoryview, body: int, context: RequestContext
) -> bytearray | Appended | Coroutine[Any, Any, bytearray | None] | None:
    """Append and answer; returns a coroutine only if it has to wait for something, wrapped if that is the commit."""
    call = read_request(frame, body, context.api_version)
    if context.api_version < _RECORD_BATCHES_SINCE:
        return _respond(call, reject_all(call, ErrorCode.UNSUPPORTED_VERSION), context)
    if not -1 <= call.acks <= 1:
        return _respond(call, reject_all(call, ErrorCode.INVALID_REQUIRED_ACKS), context)
    refusals: Refusals = {}
    if context.authorizer is not None:
        if not _may_use_transaction(call, context):
            return _respond(call, reject_all(call, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), context)
        refusals = _unauthorized(call, context)
    inspections = _inspect(call, context, refusals) if context.services.partitions.guarded else ()
    if (inspections and any(inspection.claims for _, inspection in inspections)) or (
        call.transactional_id is not None and any(True for _ in _unverified_batches(call, context))
    ):
        # The frame is a slice of the connection's buffer and valid only until the first await, so a copy is read.
        copy = memoryview(bytearray(frame))
        return _check_then_append(read_request(copy, body, context.api_version), context, inspections, refusals)
    pending: list[_Pending] = []
    if inspections:
        _refuse_bad(inspections, refusals, context)
    results = _append_all(call, context, pending, refusals)
    if pending:
        return Appended(_finish_later(call, results, pending, context))
    return _respond(call, results, context)


class _Pending(msgspec.Struct, gc=False):
    """An append that is not yet flushed or committed."""

    partition: Partition
    result: PartitionResult
    last_offset: int
    leader_epoch: int


Refusals = dict[tuple[str, int], BrokerError]
"""Errors of partitions that nothing is appended to."""
Inspections = Sequence[tuple[tuple[str, int], Inspection]]
"""The records of guarded topics, by topic and partition."""


def _name_of(topic: TopicRecords, context: RequestContext) -> str:
    """The name of a topic, empty if its id is unknown."""
    if context.api_version >= TOPIC_IDS_SINCE:
        return context.services.partitions.topic_name(topic.key) or ""
    return topic.name


def _append_all(
    call: ProduceCall, context: RequestContext, pending: list[_Pending], refusals: Refusals
) -> list[TopicResult]:
    results = []
    record_errors_left = RECORD_ERRORS_MAX
    for topic in call.topics:
        name = topic.name
        if context.api_version >= TOPIC_IDS_SINCE:
            name = _name_of(topic, context)
        partition_results = []
        for part in topic.partitions:
            try:
                if refusals and (name, part.index) in refusals:
                    raise refusals[name, part.index]
                partition_results.append(_append(name, part.index, part.records, call, context, pending))
            except BrokerError as error:
                context.services.metrics.topic_failed_produce(name)
                result = PartitionResult(part.index, error.code, message=error.message)
                if isinstance(error, RecordsRefused):
                    # At least one must be named: otherwise clients treat all records of the batch as bad.
                    result.record_errors = error.records[: max(record_errors_left, 1)]
                    record_errors_left -= len(result.record_errors)
                _name_leader(result, name, call, context)
                partition_results.append(result)
        results.append(TopicResult(topic.key, partition_results))
    return results


def _append(
    topic: str,
    index: int,
    records: memoryview | None,
    call: ProduceCall,
    context: RequestContext,
    pending: list[_Pending],
) -> PartitionResult:
    """Append to one partition; raises BrokerError."""
    if not topic:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = context.services.partitions.get(topic, index)
    if records is None or len(records) < HEADER_BYTES:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "the request contains no complete record batch")
    if topic in INTERNAL_TOPICS:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the broker may write to {topic}")
    if records[_ATTRIBUTES_AT] & _TRANSACTIONAL and call.transactional_id is None:
        raise BrokerError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch needs a transactional id"
        )
    acks_all = call.acks == _ACKS_ALL
    partition.traffic.produce_requests += 1
    appended = partition.append(records, acks_all=acks_all)
    result = PartitionResult(index, 0, appended.first_offset, appended.timestamp_ms, appended.log_start_offset)
    if partition.must_flush or (acks_all and appended.last_offset >= partition.high_watermark):
        pending.append(_Pending(partition, result, appended.last_offset, partition.leader_epoch))
    return result


async def _check_then_append(
    call: ProduceCall, context: RequestContext, inspections: Inspections, refusals: Refusals
) -> bytearray | None:
    """Look up new schema ids in the registry, have the coordinator verify new partitions of a transaction, then append.

    The connection's next requests wait, so order is kept.
    """
    await context.services.schema_guard.resolve([inspection for _, inspection in inspections])
    _refuse_bad(inspections, refusals, context)
    if call.transactional_id is not None:
        await _verify(call, context, refusals)
    pending: list[_Pending] = []
    results = _append_all(call, context, pending, refusals)
    if pending:
        return await _finish_later(call, results, pending, context)
    return _respond(call, results, context)


async def _finish_later(
    call: ProduceCall, results: list[TopicResult], pending: list[_Pending], context: RequestContext
) -> bytearray | None:
    """Wait until the records are on disk (if `flush.messages` requires it) and committed (`acks=all`)."""
    for waiting in pending:
        try:
            if waiting.partition.must_flush:
                await context.services.logs.flush_now(waiting.partition.log)
            if call.acks == _ACKS_ALL:
                await waiting.partition.wait_committed(
                    waiting.last_offset, timeout_ms=max(call.timeout_ms, 1), leader_epoch=waiting.leader_epoch
                )
                waiting.partition.check_min_isr_after_append()
        except BrokerError as error:
            waiting.result.error = error.code
            waiting.result.base_offset = -1
            waiting.result.message = error.message
            _name_leader(waiting.result, waiting.partition.topic, call, context)
    return _respond(call, results, context)


def _name_leader(result: PartitionResult, topic: str, call: ProduceCall, context: RequestContext) -> None:
    """With an error that says that another broker leads the partition, add which one."""
    if result.error in LEADER_CHANGED and context.api_version >= _CURRENT_LEADER_SINCE:
        result.leader = find_leader(context, topic, result.index)
        if result.leader is not None:
            call.leaders.append(result.leader[0])


def _respond(call: ProduceCall, results: list[TopicResult], context: RequestContext) -> bytearray | None:
    throttle_ms = 0
    if context.usage is not None:
        throttle_ms = context.usage.charge_produce(call.size_bytes, is_answered=call.acks != _ACKS_NONE)
    if call.acks == _ACKS_NONE:
        if any(result.error for topic in results for result in topic.partitions):
            raise AcksNoneFailed
        return None
    endpoints = encode_endpoints(call.leaders, context) if call.leaders else NO_ENDPOINTS
    return write_response(
        results, context.api_version, context.correlation_id, endpoints=endpoints, throttle_ms=throttle_ms
    )


# --- access -----------------------------------------------------------------------------------------------------------


def _may_use_transaction(call: ProduceCall, context: RequestContext) -> bool:
    """Whether the client may use the transactional id, if a batch is transactional."""
    is_transactional = any(_is_transactional(part.records) for topic in call.topics for part in topic.partitions)
    if not is_transactional:
        return True
    return call.transactional_id is not None and may_use_transactions(context)(call.transactional_id)


def _unauthorized(call: ProduceCall, context: RequestContext) -> Refusals:
    """The partitions of topics that the client may not write to, whether they exist or not."""
    refusals: Refusals = {}
    may_write = may_use_topics(context)
    for topic in call.topics:
        name = _name_of(topic, context)
        if name and not may_write(name):
            refusal = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            refusals.update(((name, part.index), refusal) for part in topic.partitions)
    return refusals


# --- transactions -----------------------------------------------------------------------------------------------------


def _unverified_batches(call: ProduceCall, context: RequestContext) -> Iterator[tuple[Partition, int, int]]:
    """Partition, producer id and epoch of the batches that the coordinator has to verify."""
    services = context.services
    # New producers let the broker add their partitions; those of older ones need not be verified.
    adds_partitions = context.api_version >= _IMPLICIT_PARTITIONS_SINCE
    if not adds_partitions and not services.current_settings.transaction_partition_verification_enable:
        return
    for topic in call.topics:
        name = _name_of(topic, context)
        for part in topic.partitions:
            partition = services.partitions.find(name, part.index)
            producer = _transactional_producer(part.records)
            if partition is None or producer is None:
                continue
            if partition.producers.has_ongoing_transaction(*producer):
                continue
            transactional_id = call.transactional_id or ""
            is_known = services.transactions.is_partition_in_transaction(transactional_id, *producer, name, part.index)
            if not is_known:
                yield partition, *producer


def _transactional_producer(records: memoryview | None) -> tuple[int, int] | None:
    """Id and epoch of the producer if the batch is transactional."""
    if records is None or not _is_transactional(records):
        return None
    try:
        header = parse_header(records, 0)
    except CorruptBatch:
        return None
    return header.producer_id, header.producer_epoch


def _is_transactional(records: memoryview | None) -> bool:
    return records is not None and len(records) >= HEADER_BYTES and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)


async def _verify(call: ProduceCall, context: RequestContext, refusals: Refusals) -> None:
    """Have the coordinator verify each partition that joins a transaction, and refuse those that it rejects."""
    guards: list[tuple[Partition, int, VerificationGuard]] = []
    for partition, producer_id, producer_epoch in list(_unverified_batches(call, context)):
        if (partition.topic, partition.index) in refusals:
            continue
        guards.append((partition, producer_id, partition.producers.begin_verification(producer_id)))
        error = await context.services.transaction_verifier.verify_or_add(
            call.transactional_id or "",
            producer_id,
            producer_epoch,
            partition.topic,
            partition.index,
            add=context.api_version >= _IMPLICIT_PARTITIONS_SINCE,
            knows_abortable=context.api_version >= _ABORTABLE_SINCE,
        )
        if error != ErrorCode.NONE:
            code = ErrorCode.NOT_ENOUGH_REPLICAS if error in _TRY_AGAIN else error
            refusals[partition.topic, partition.index] = BrokerError(code)
    for partition, producer_id, guard in guards:
        # A marker written in the meantime has ended the transaction that was verified.
        if not partition.producers.is_verified(producer_id, guard):
            refusals.setdefault((partition.topic, partition.index), BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS))


# --- guarded topics ---------------------------------------------------------------------------------------------------


def _inspect(call: ProduceCall, context: RequestContext, refusals: Refusals) -> Inspections:
    """Inspect the schema ids of records for guarded topics that this broker leads."""
    partitions = context.services.partitions
    inspections: list[tuple[tuple[str, int], Inspection]] = []
    for topic in call.topics:
        name = _name_of(topic, context)
        settings = partitions.guarded.get(name)
        if settings is None:
            continue
        for part in topic.partitions:
            partition = partitions.find(name, part.index)
            if partition is None or not partition.is_leader or part.records is None or len(part.records) < HEADER_BYTES:
                continue
            if (name, part.index) in refusals:
                continue
            records = partition.log.open_records(part.records)
            inspection = context.services.schema_guard.inspect(name, settings, records)
            inspections.append(((name, part.index), inspection))
    return inspections


def _refuse_bad(inspections: Inspections, refusals: Refusals, context: RequestContext) -> None:
    for (topic, index), inspection in inspections:
        refusal = inspection.refusal
        if inspection.bad:
            context.services.metrics.topic_unregistered_records(topic, len(inspection.bad))
        if refusal is not None:
            refusals.setdefault((topic, index), refusal)
