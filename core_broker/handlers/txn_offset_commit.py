"""TxnOffsetCommit, key 28, versions 0-5.

Commits offsets of a group as part of a producer's transaction: they are written at once, but take effect only when the
transaction is committed. The partition of `__consumer_offsets` must belong to the transaction.

Versions: 2 leader epoch; 3 flexible, member id, instance id and generation, which are checked (KIP-447); 4
TRANSACTION_ABORTABLE (KIP-890); 5 adds the partition to the transaction implicitly (KIP-890).
"""

from typing import Final

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import Committer, OffsetToCommit, TransactionalProducer
from core_broker.groups.offsets import CommittedOffset
from core_broker.handlers.access import Predicate, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import txn_offset_commit as wire

_ABORTABLE_SINCE: Final = 4
_IMPLICIT_ADD_SINCE: Final = 5


async def handle(request: wire.TxnOffsetCommitRequest, context: RequestContext) -> wire.TxnOffsetCommitResponse:
    """Write the offsets as part of the transaction."""
    offsets: list[OffsetToCommit] = []
    accepted: list[wire.TxnOffsetCommitResponsePartition] = []
    response = wire.TxnOffsetCommitResponse()
    may_read = may_use_topics(context)
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            answer = wire.TxnOffsetCommitResponsePartition(
                partition.partition_index, _error(topic.name, partition, context, may_read)
            )
            answers.append(answer)
            if answer.error_code == ErrorCode.NONE:
                accepted.append(answer)
                committed = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    context.services.clock.now_ms(),
                )
                offsets.append((topic.name, partition.partition_index, committed))
        response.topics.append(wire.TxnOffsetCommitResponseTopic(topic.name, answers))
    error = await _commit(request, offsets, context) if offsets else ErrorCode.NONE
    for answer in accepted:
        answer.error_code = error
    return response


async def _commit(
    request: wire.TxnOffsetCommitRequest, offsets: list[OffsetToCommit], context: RequestContext
) -> ErrorCode:
    committer = Committer(
        group_id=request.group_id,
        member_id=request.member_id,
        generation_or_epoch=request.generation_id,
        instance_id=request.group_instance_id,
    )
    producer = TransactionalProducer(producer_id=request.producer_id, producer_epoch=request.producer_epoch)
    try:
        error = await _join_transaction(request, context)
        if error is not ErrorCode.NONE:
            return error
        await context.services.groups.offset_commits.commit_in_transaction(
            committer, offsets, producer=producer, api_version=context.api_version
        )
    except BrokerError as failure:
        return failure.code
    return ErrorCode.NONE


async def _join_transaction(request: wire.TxnOffsetCommitRequest, context: RequestContext) -> ErrorCode:
    """Verify that the group's partition belongs to the transaction, or add it if the client's version does not."""
    services = context.services
    is_implicit = context.api_version >= _IMPLICIT_ADD_SINCE
    if not is_implicit and not services.current_settings.transaction_partition_verification_enable:
        return ErrorCode.NONE
    code = await services.transaction_verifier.verify_or_add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        OFFSETS_TOPIC,
        services.groups.partition_of(request.group_id),
        add=is_implicit,
        knows_abortable=context.api_version >= _ABORTABLE_SINCE,
    )
    # Older clients do not expect NETWORK_EXCEPTION here; after the other they try again at the same coordinator.
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code is ErrorCode.NETWORK_EXCEPTION else code


def _error(
    topic: str, partition: wire.TxnOffsetCommitRequestPartition, context: RequestContext, may_read: Predicate
) -> ErrorCode:
    if not may_read(topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = context.services.metadata.image.topics.get(topic)
    if known is None or partition.partition_index not in known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return context.services.groups.offset_commits.metadata_error(partition.committed_metadata)
