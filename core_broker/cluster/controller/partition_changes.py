"""Plans AlterPartition: the ISR and the recovery state that the leader of a partition proposes."""

from collections.abc import Sequence
from typing import NamedTuple

from core_broker.cluster.controller.registrations import check_broker_epoch
from core_broker.cluster.controller.transitions import RECOVERED, RECOVERING, TopicRules, Wish, change_record
from core_broker.cluster.metadata import MetadataImage, PartitionImage, TopicImage, apply_change
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages import alter_partition as wire
from core_broker.protocol.stored.metadata import PartitionChangeRecord
from core_broker.settings import BrokerSettings


class _Change(NamedTuple):
    record: PartitionChangeRecord | None
    response: wire.AlterPartitionResponsePartitionData


def plan_alter_partition(
    request: wire.AlterPartitionRequest, image: MetadataImage, settings: BrokerSettings
) -> tuple[list[PartitionChangeRecord], wire.AlterPartitionResponse]:
    """The records and the response, which has the state after the change. Raises STALE_BROKER_EPOCH."""
    check_broker_epoch(request.broker_id, request.broker_epoch, image)
    rules = TopicRules(image, settings)
    records: list[PartitionChangeRecord] = []
    topics: list[wire.AlterPartitionResponseTopicData] = []
    for wanted in request.topics:
        partitions = []
        for proposal in wanted.partitions:
            try:
                change = _plan(proposal, wanted.topic_id, request.broker_id, image, rules)
            except BrokerError as error:
                partitions.append(_error(proposal.partition_index, error.code))
                continue
            partitions.append(change.response)
            if change.record is not None:
                records.append(change.record)
        topics.append(wire.AlterPartitionResponseTopicData(wanted.topic_id, partitions))
    return records, wire.AlterPartitionResponse(topics=topics)


def _plan(
    proposal: wire.PartitionData, topic_id: bytes, leader_id: int, image: MetadataImage, rules: TopicRules
) -> _Change:
    topic, partition = _find(topic_id, proposal.partition_index, image)
    members = proposal.new_isr_with_epochs or [wire.BrokerState(broker_id, -1) for broker_id in proposal.new_isr]
    isr = tuple(member.broker_id for member in members)
    _check_leader(proposal, partition, leader_id)
    if set(isr) == set(partition.isr) and proposal.leader_recovery_state == partition.leader_recovery_state:
        # A request sent again after its answer was lost: its epoch is old, but what it wants is so (KAFKA-14144).
        return _Change(None, _state(proposal.partition_index, partition))
    if proposal.partition_epoch < partition.partition_epoch:
        raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION)
    _check_isr(isr, proposal.leader_recovery_state, partition)
    _check_eligibility(members, image)
    wish = Wish(isr=isr, recovery_state=proposal.leader_recovery_state)
    record = change_record(
        partition, wish, rules.of(topic, partition), topic_id=topic_id, index=proposal.partition_index
    )
    if record is None:
        return _Change(None, _state(proposal.partition_index, partition))
    after = apply_change(partition, record)
    if after.leader_id != leader_id:
        # The change completes a reassignment that takes the sender away. It is written; the sender reads it in the log.
        return _Change(record, _error(proposal.partition_index, ErrorCode.NEW_LEADER_ELECTED))
    return _Change(record, _state(proposal.partition_index, after))


def _find(topic_id: bytes, index: int, image: MetadataImage) -> tuple[TopicImage, PartitionImage]:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic, partition


def _check_leader(proposal: wire.PartitionData, partition: PartitionImage, leader_id: int) -> None:
    """Raise BrokerError unless the sender leads the partition, in this epoch.

    A sender that knows more than this controller does has heard of a newer one.
    """
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    if proposal.leader_epoch < partition.leader_epoch:
        raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
    if partition.leader_id != leader_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)


def _check_isr(isr: tuple[int, ...], recovery_state: int, partition: PartitionImage) -> None:
    is_valid = (
        len(set(isr)) == len(isr)
        and set(isr) <= set(partition.replicas)  # KAFKA-9672
        and partition.leader_id in isr
        and recovery_state in (RECOVERED, RECOVERING)
        and not (recovery_state == RECOVERING and len(isr) > 1)
        and not (recovery_state == RECOVERING and partition.leader_recovery_state == RECOVERED)
    )
    if not is_valid:
        raise BrokerError(ErrorCode.INVALID_REQUEST)


def _check_eligibility(members: Sequence[wire.BrokerState], image: MetadataImage) -> None:
    """Raise INELIGIBLE_REPLICA for members that are fenced, stopping, or another incarnation than the leader heard."""
    for member in members:
        broker = image.brokers.get(member.broker_id)
        if broker is None or broker.is_fenced or broker.in_controlled_shutdown:
            raise BrokerError(ErrorCode.INELIGIBLE_REPLICA)
        if member.broker_epoch not in (-1, broker.epoch):
            raise BrokerError(ErrorCode.INELIGIBLE_REPLICA)


def _state(index: int, partition: PartitionImage) -> wire.AlterPartitionResponsePartitionData:
    return wire.AlterPartitionResponsePartitionData(
        partition_index=index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _error(index: int, code: ErrorCode) -> wire.AlterPartitionResponsePartitionData:
    return wire.AlterPartitionResponsePartitionData(partition_index=index, error_code=code)
