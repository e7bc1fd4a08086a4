"""Plans the creation and growth of topics: checks a request and returns the records that carry it out."""

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from core_broker.cluster.controller.placement import check_assignment, place
from core_broker.cluster.controller.topic_rules import check_collision, check_topic_name
from core_broker.cluster.controller.transitions import UNASSIGNED_DIRECTORY
from core_broker.cluster.coordinators import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.metadata import BrokerImage, MetadataImage, PartitionImage, ResourceType
from core_broker.cluster.metadata_records import partition_record
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import ZERO_UUID
from core_broker.protocol.stored.metadata import ConfigRecord, PartitionRecord, TopicRecord
from core_broker.security.quotas import UNLIMITED, MutationQuota
from core_broker.settings import BrokerSettings, TopicSettings

PARTITIONS_PER_CHANGE_MAX: Final = 10_000
"""Partitions that one request may create, as in Kafka: a typo must not fill the disk with directories."""

_BY_DEFAULT: Final = -1
_METADATA_TOPIC_ID: Final = ZERO_UUID[:-1] + b"\x01"


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to be created; -1 means the broker's default."""

    name: str
    partition_count: int = _BY_DEFAULT
    replication_factor: int = _BY_DEFAULT
    assignments: Mapping[int, Sequence[int]] = {}
    """Replicas by partition, if the client chose them."""
    configs: Mapping[str, str | None] = {}


class CreatedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it was, or would be, created."""

    name: str
    topic_id: bytes
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


class MorePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to be grown to `count` partitions."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None
    """Replicas of each new partition, if the client chose them."""


class TopicPlanner:
    """Plans the topics of one request; `records` create the valid ones."""

    def __init__(
        self,
        image: MetadataImage,
        settings: BrokerSettings,
        *,
        topic_ids: dict[str, bytes] | None = None,
        quota: MutationQuota = UNLIMITED,
    ) -> None:
        """`topic_ids` keeps the new ids, so that a second plan for the same request gives the same ones."""
        self._quota = quota
        self.records: list[Message] = []
        self._topic_ids = {} if topic_ids is None else topic_ids
        self._image = image
        self._settings = settings
        self._names = set(image.topics)
        self._partition_count = 0

    def plan(self, topic: NewTopic) -> CreatedTopic:
        """Plan one topic, or raise BrokerError."""
        check_topic_name(topic.name)
        if topic.name in self._names:
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {topic.name!r} already exists.")
        check_collision(topic.name, self._names)
        configs: dict[str, str] = {}
        for key, value in topic.configs.items():
            if value is None:
                raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {key}")
            configs[key] = value
        TopicSettings.resolve_change(configs, self._settings)
        assignments = self._assignments(topic)
        total = self._partition_count + len(assignments)
        if total > PARTITIONS_PER_CHANGE_MAX:
            raise _too_many_partitions(total)
        self._quota.charge(topic.name, len(assignments))
        created = CreatedTopic(
            name=topic.name,
            topic_id=self._topic_ids.setdefault(topic.name, new_topic_id()),
            partition_count=len(assignments),
            replication_factor=len(assignments[0]),
            configs=configs,
        )
        self.records.extend(_creation_records(created, assignments, self._image.brokers))
        self._partition_count = total
        self._names.add(topic.name)
        return created

    def _assignments(self, topic: NewTopic) -> Sequence[Sequence[int]]:
        if topic.assignments:
            return self._manual_assignments(topic)
        count = self._settings.num_partitions if topic.partition_count == _BY_DEFAULT else topic.partition_count
        if count <= 0:
            raise BrokerError(
                ErrorCode.INVALID_PARTITIONS,
                f"Number of partitions was set to {count}; it must be larger than 0, or -1 for num.partitions.",
            )
        if count > PARTITIONS_PER_CHANGE_MAX:
            raise _too_many_partitions(count)
        factor = topic.replication_factor
        if factor == _BY_DEFAULT:
            factor = self._settings.default_replication_factor
        if factor <= 0:
            raise BrokerError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor was set to {factor}; it must be larger than 0, or -1 for "
                "default.replication.factor.",
            )
        return place(self._image.brokers.values(), partition_count=count, replication_factor=factor)

    def _manual_assignments(self, topic: NewTopic) -> Sequence[Sequence[int]]:
        if topic.replication_factor != _BY_DEFAULT or topic.partition_count != _BY_DEFAULT:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified: the number of partitions and the replication factor "
                "must both be -1.",
            )
        if sorted(topic.assignments) != list(range(len(topic.assignments))):
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment must name the partitions 0, 1, 2 and so on, each once.",
            )
        chosen = [topic.assignments[index] for index in range(len(topic.assignments))]
        for replicas in chosen:
            check_assignment(replicas, self._image.brokers, replication_factor=len(chosen[0]))
        return chosen


def plan_more_partitions(
    topic: MorePartitions, image: MetadataImage, quota: MutationQuota = UNLIMITED
) -> list[PartitionRecord]:
    """The records that grow a topic, or BrokerError."""
    existing = image.topics.get(topic.name)
    if existing is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {topic.name!r} does not exist.")
    current = len(existing.partitions)
    if topic.name in INTERNAL_TOPICS:
        # The number of partitions determines the coordinator of a group: the groups would lose their offsets.
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name!r} is internal: its number of partitions, {current}, cannot be changed.",
        )
    if topic.count < current:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {topic.count} would not be an increase.",
        )
    if topic.count == current:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if topic.count - current > PARTITIONS_PER_CHANGE_MAX:
        raise _too_many_partitions(topic.count - current)
    added = topic.count - current
    first = len(existing.partitions)
    factor = len(existing.partitions[0].replicas)
    if topic.assignments is None:
        chosen: Sequence[Sequence[int]] = place(
            image.brokers.values(), partition_count=added, replication_factor=factor, first_partition=first
        )
    else:
        assignments = topic.assignments
        if len(assignments) != added:
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) "
                "were specified.",
            )
        for replicas in assignments:
            check_assignment(replicas, image.brokers, replication_factor=factor)
        chosen = assignments
    quota.charge(topic.name, added)
    return [
        partition_record(existing.topic_id, index, new_partition(index, replicas, image.brokers))
        for index, replicas in enumerate(chosen, start=first)
    ]


def internal_topic(name: str, settings: BrokerSettings, *, broker_count: int) -> NewTopic:
    """The topic of a coordinator, with as many replicas as configured or as there are brokers."""
    configs: dict[str, str | None]
    if name == OFFSETS_TOPIC:
        count, factor = settings.offsets_topic_num_partitions, settings.offsets_topic_replication_factor
        configs = {"segment.bytes": str(settings.offsets_topic_segment_bytes)}
    elif name == TRANSACTIONS_TOPIC:
        count, factor = settings.transaction_state_log_num_partitions, settings.transaction_state_log_replication_factor
        in_sync = min(settings.transaction_state_log_min_isr, factor, max(broker_count, 1))
        configs = {
            "segment.bytes": str(settings.transaction_state_log_segment_bytes),
            "min.insync.replicas": str(in_sync),
            "unclean.leader.election.enable": "false",
        }
    else:
        raise ValueError(f"{name} is not an internal topic")
    configs |= {"cleanup.policy": "compact", "compression.type": "producer"}
    factor = min(factor, max(broker_count, 1))
    return NewTopic(name=name, partition_count=count, replication_factor=factor, configs=configs)


def new_topic_id() -> bytes:
    """A random id whose text does not begin with a dash, which command lines would parse as an option."""
    while True:
        topic_id = os.urandom(16)
        if topic_id not in (ZERO_UUID, _METADATA_TOPIC_ID) and not base64.urlsafe_b64encode(topic_id).startswith(b"-"):
            return topic_id


def new_partition(index: int, replicas: Sequence[int], brokers: Mapping[int, BrokerImage]) -> PartitionImage:
    """A new partition: every replica whose broker runs is in sync, and the first of them leads. Raises BrokerError."""
    active = tuple(
        replica
        for replica in replicas
        if not brokers[replica].is_fenced and not brokers[replica].in_controlled_shutdown
    )
    if not active:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown.",
        )
    return PartitionImage(
        replicas=tuple(replicas),
        isr=active,
        leader_id=active[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=(UNASSIGNED_DIRECTORY,) * len(replicas),
    )


def _creation_records(
    topic: CreatedTopic, assignments: Sequence[Sequence[int]], brokers: Mapping[int, BrokerImage]
) -> list[Message]:
    """The topic, its configs and its partitions, in this order, so that a partition finds its settings."""
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic.topic_id)]
    records.extend(
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic.name, name=key, value=value)
        for key, value in topic.configs.items()
    )
    records.extend(
        partition_record(topic.topic_id, index, new_partition(index, replicas, brokers))
        for index, replicas in enumerate(assignments)
    )
    return records


def _too_many_partitions(count: int) -> BrokerError:
    return BrokerError(
        ErrorCode.POLICY_VIOLATION,
        f"The request would create {count} partitions; at most {PARTITIONS_PER_CHANGE_MAX} are allowed.",
    )
