"""Plans what a change of a broker, of the configs or an election means for the partitions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from core_broker.cluster.controller.transitions import (
    MIN_ISR,
    UNCLEAN_ELECTION,
    Election,
    TopicRules,
    Wish,
    change_record,
)
from core_broker.cluster.effective_settings import EVERY_BROKER
from core_broker.cluster.metadata import (
    NO_LEADER,
    BrokerImage,
    MetadataDraft,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored
from core_broker.settings import BrokerSettings

REBALANCED_MAX: Final = 1000
"""Elections of one rebalance, as in Kafka: each makes clients of the partition look for their leader."""

_FENCE: Final = 1
_UNFENCE: Final = -1


@dataclass(frozen=True, slots=True)
class _Located:
    topic: TopicImage
    index: int
    partition: PartitionImage


# -- brokers -----------------------------------------------------------------------------------------------------------


def plan_fencing(broker: BrokerImage, image: MetadataImage, settings: BrokerSettings) -> list[Message]:
    """Fence a broker: it leaves every ISR, and others lead its partitions."""
    return [
        *plan_removal(broker.broker_id, image, settings),
        stored.BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=_FENCE),
    ]


def plan_unfencing(broker: BrokerImage, image: MetadataImage, settings: BrokerSettings) -> list[Message]:
    """Unfence a broker: it may lead what has no leader."""
    rules = TopicRules(image, settings, usable=broker.broker_id)
    leaderless = _where(
        image, lambda partition: partition.leader_id == NO_LEADER and broker.broker_id in partition.replicas
    )
    return [
        stored.BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=_UNFENCE),
        *_changes(leaderless, rules, lambda _: Wish()),
    ]


def plan_controlled_shutdown(broker: BrokerImage, image: MetadataImage, settings: BrokerSettings) -> list[Message]:
    """Let a broker stop: it hands over what it leads, leaves every ISR and may not join one again (KAFKA-14140)."""
    return [
        stored.BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        ),
        *plan_removal(broker.broker_id, image, settings),
    ]


def plan_removal(
    broker_id: int, image: MetadataImage, settings: BrokerSettings, *, is_unclean: bool = False
) -> list[stored.PartitionChangeRecord]:
    """Take a broker out of every ISR.

    `is_unclean` means that it may have lost committed records, so it is no eligible leader any more, either.
    """
    rules = TopicRules(image, settings, unusable=broker_id)
    unclean_replicas = frozenset({broker_id} if is_unclean else ())
    affected = _where(
        image,
        lambda partition: (
            broker_id in partition.isr
            or partition.leader_id == broker_id
            or (is_unclean and broker_id in partition.elr)
        ),
    )
    return _changes(
        affected,
        rules,
        lambda found: Wish(isr=_without(found.partition.isr, broker_id), unclean_replicas=unclean_replicas),
    )


def plan_offline_directories(
    broker: BrokerImage, offline: Iterable[bytes], image: MetadataImage, settings: BrokerSettings
) -> list[Message]:
    """Take the replicas in failed log directories out of their ISRs; nothing for directories that failed before."""
    failed = set(offline) & set(broker.log_dirs)
    if not failed:
        return []
    broker_id = broker.broker_id
    rules = TopicRules(image, settings, unusable=broker_id)
    affected = _where(
        image, lambda partition: broker_id in partition.isr and _directory(partition, broker_id) in failed
    )
    remaining = [directory for directory in broker.log_dirs if directory not in failed]
    return [
        *_changes(affected, rules, lambda found: Wish(isr=_without(found.partition.isr, broker_id))),
        stored.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=remaining),
    ]


def leads_partitions(broker_id: int, image: MetadataImage) -> bool:
    """Whether a broker leads anything."""
    return any(
        partition.leader_id == broker_id for topic in image.topics.values() for partition in topic.partitions.values()
    )


# -- configs and features ----------------------------------------------------------------------------------------------


def plan_config_effects(
    configs: Sequence[stored.ConfigRecord], image: MetadataImage, settings: BrokerSettings
) -> list[stored.PartitionChangeRecord]:
    """What new configs mean for partitions; written in the same batch, so that no broker sees the configs without it.

    A lower min.insync.replicas lets an ISR commit without the eligible replicas, which are eligible no longer. A
    partition without a leader keeps them, since it cannot commit anything. Kafka clears them there, too, which leaves
    such a partition to an unclean election. unclean.leader.election.enable=true elects leaders where there are none.
    """
    changed = [record for record in configs if record.name in (MIN_ISR, UNCLEAN_ELECTION)]
    if not changed:
        return []
    draft = MetadataDraft(image)
    draft.replay(changed)
    after = draft.finish(offset=image.offset, epoch=image.epoch)
    for_all = any((r.resource_type, r.resource_name) == (ResourceType.BROKER, EVERY_BROKER) for r in changed)
    names = {record.resource_name for record in changed if record.resource_type == ResourceType.TOPIC}
    affected = (
        found
        for found in _where(image, lambda partition: bool(partition.elr) or partition.leader_id == NO_LEADER)
        if for_all or found.topic.name in names
    )
    return _changes(affected, TopicRules(after, settings), lambda _: Wish())


def plan_start_of_elr(image: MetadataImage, settings: BrokerSettings) -> list[Message]:
    """Give the cluster one `min.insync.replicas` when the feature is switched on.

    Eligible replicas are only safe if every controller and every leader counts with the same number, so it is written
    to the log, and no broker may have one of its own.
    """
    resources = {name: config for (kind, name), config in image.configs.items() if kind == ResourceType.BROKER}
    values: dict[str, str | None] = {
        name: None for name, config in resources.items() if name != EVERY_BROKER and MIN_ISR in config
    }
    if MIN_ISR not in resources.get(EVERY_BROKER, {}):
        values[EVERY_BROKER] = str(settings.min_insync_replicas)
    return [
        stored.ConfigRecord(resource_type=ResourceType.BROKER, resource_name=name, name=MIN_ISR, value=value)
        for name, value in values.items()
    ]


def plan_end_of_elr(image: MetadataImage) -> list[Message]:
    """Clear the eligible replicas when the feature is switched off; an empty ISR gets them back as members."""
    records: list[Message] = [
        stored.PartitionChangeRecord(
            partition_id=found.index,
            topic_id=found.topic.topic_id,
            isr=list(found.partition.elr or found.partition.last_known_elr),
        )
        for found in _where(image, lambda partition: not partition.isr)
    ]
    return [*records, stored.ClearElrRecord(topic_name="")]


# -- elections ---------------------------------------------------------------------------------------------------------


def plan_election(
    topic_name: str, index: int, election: Election, image: MetadataImage, rules: TopicRules
) -> stored.PartitionChangeRecord:
    """An election that a client requested. Raises BrokerError, as Kafka does."""
    topic = image.topics.get(topic_name)
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None or partition is None:
        text = f"No such partition as {topic_name}-{index}"
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    is_preferred = election is Election.PREFERRED
    if partition.leader_id == partition.replicas[0] if is_preferred else partition.leader_id != NO_LEADER:
        raise BrokerError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    wish = Wish(election=election)
    record = change_record(partition, wish, rules.of(topic, partition), topic_id=topic.topic_id, index=index)
    if record is None or record.leader < 0:
        if is_preferred:
            text = f"The preferred leader of {topic_name}-{index}, broker {partition.replicas[0]}, is not in sync."
            raise BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text)
        text = f"No replica of {topic_name}-{index} is running."
        raise BrokerError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
    return record


def plan_rebalance(
    image: MetadataImage, settings: BrokerSettings, *, imbalance_percentage: int
) -> list[stored.PartitionChangeRecord]:
    """Give leadership back to preferred replicas, for brokers that lead too little of what they should."""
    preferred: dict[int, list[_Located]] = {}
    for found in _where(image, lambda _: True):
        preferred.setdefault(found.partition.replicas[0], []).append(found)
    rules = TopicRules(image, settings)
    records: list[stored.PartitionChangeRecord] = []
    for broker_id, partitions in sorted(preferred.items()):
        lost = [found for found in partitions if found.partition.leader_id != broker_id]
        if rules.is_active(broker_id) and len(lost) * 100 > len(partitions) * imbalance_percentage:
            in_sync = (found for found in lost if broker_id in found.partition.isr)
            records.extend(_changes(in_sync, rules, lambda _: Wish(election=Election.PREFERRED)))
    return records[:REBALANCED_MAX]


# -- helpers -----------------------------------------------------------------------------------------------------------


def _where(image: MetadataImage, is_affected: Callable[[PartitionImage], bool]) -> Iterator[_Located]:
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if is_affected(partition):
                yield _Located(topic, index, partition)


def _changes(
    partitions: Iterable[_Located], rules: TopicRules, wish: Callable[[_Located], Wish]
) -> list[stored.PartitionChangeRecord]:
    records = (
        change_record(
            found.partition,
            wish(found),
            rules.of(found.topic, found.partition),
            topic_id=found.topic.topic_id,
            index=found.index,
        )
        for found in partitions
    )
    return [record for record in records if record is not None]


def _without(replicas: tuple[int, ...], broker_id: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != broker_id)


def _directory(partition: PartitionImage, broker_id: int) -> bytes | None:
    place = partition.replicas.index(broker_id)
    return partition.directories[place] if place < len(partition.directories) else None
