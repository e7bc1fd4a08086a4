"""All partitions hosted by this broker, kept in sync with the metadata log."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from core_broker.cluster.effective_settings import broker_settings, topic_settings
from core_broker.cluster.metadata import MetadataImage, PartitionImage, ResourceType, TopicImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.replicas.membership import Membership
from core_broker.cluster.replicas.throttle import ReplicationThrottles
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings, TopicSettings
from core_broker.settings.cluster import RACK_AWARE_SELECTOR

log = logging.getLogger(__name__)

_PREPARED_MIN: Final = 16
"""Fewer new partitions than this are created on the event loop: a thread would take longer."""

PartitionListener = Callable[[Partition], None]


class Partitions:
    """The partitions of this broker by topic and index. Only replayed metadata adds, changes or removes them."""

    def __init__(
        self, *, local_id: int, logs: LogStore, settings: BrokerSettings, clock: Clock, metrics: BrokerMetrics
    ) -> None:
        self._local_id = local_id
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self.metrics = metrics
        self.reads_from_nearest = settings.replica_selector_class == RACK_AWARE_SELECTOR
        """Whether leaders send consumers to a follower in their rack (KIP-392)."""
        self.applied_offset = -1
        """Offset of the last metadata record that the partitions have followed."""
        self.membership = Membership()
        """The brokers of the newest metadata, for all partitions."""
        self.throttles = ReplicationThrottles(settings)
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._offline: dict[tuple[str, int], BrokerError] = {}
        self._names: dict[bytes, str] = {}
        self._topics: Mapping[str, TopicImage] = {}
        """All topics of the cluster, also those that this broker does not host."""
        self.guarded: dict[str, TopicSettings] = {}
        """Settings of the topics whose records must have registered schema ids; other topics are not included."""
        self.on_leadership: list[PartitionListener] = []
        """Called when this broker becomes the leader of a partition in a new epoch."""
        self.on_leadership_lost: list[PartitionListener] = []
        """Called when this broker no longer leads a partition that it still hosts."""
        self.on_following: list[PartitionListener] = []
        """Called when this broker follows another leader, or the same one in a new epoch, or waits for an election."""
        self.on_removed: list[PartitionListener] = []
        """Called when this broker no longer hosts a partition."""
        self.on_isr_proposal: list[PartitionListener] = []
        """Called when a leader wants the controller to change the ISR."""
        self.on_topics_removed: list[Callable[[Sequence[str]], None]] = []
        # From now on only committed records are deleted or cleaned.
        logs.high_watermark_of = self.high_watermark_of

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def offline_count(self) -> int:
        """How many partitions this broker should host and cannot, because of a disk error."""
        return len(self._offline)

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition, or None when this broker does not host it."""
        return self._partitions.get((topic, index))

    def get(self, topic: str, index: int) -> Partition:
        """The partition if this broker leads it; otherwise raises an error that makes clients refresh metadata."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._not_hosted(topic, index)
        if partition.leader_id != self._local_id:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def get_in_epoch(self, topic: str, index: int, leader_epoch: int, *, from_leader: bool = True) -> Partition:
        """The partition for a client that knows the leader epoch; a wrong epoch matters more than a wrong broker."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._not_hosted(topic, index)
        if leader_epoch != partition.leader_epoch:
            partition.check_leader_epoch(leader_epoch)
        if from_leader and partition.leader_id != self._local_id:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _not_hosted(self, topic: str, index: int) -> BrokerError:
        if (topic, index) in self._offline:
            return self._offline[topic, index]
        known = self._topics.get(topic)
        is_elsewhere = known is not None and index in known.partitions
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return BrokerError(code)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id."""
        return self._names.get(topic_id)

    def high_watermark_of(self, of: PartitionLog) -> int:
        """Up to where a log may be cleaned or deleted; records above may still be truncated."""
        partition = self._partitions.get((of.topic, of.partition))
        return self._checkpointed(of) if partition is None else partition.high_watermark

    def _checkpointed(self, of: PartitionLog) -> int:
        """The high watermark that was stored for a log, within its bounds."""
        stored_offset = self._logs.high_watermarks.get((of.topic, of.partition), 0)
        return max(of.start_offset, min(stored_offset, of.end_offset))

    def synchronise(self, image: MetadataImage) -> None:
        """Host the partitions of the image; called once, after the replay at start."""
        self._topics, self.membership.brokers = image.topics, image.brokers
        self.throttles.configure(broker_settings(image, self._settings))
        for topic in image.topics.values():
            self._apply_topic(image, topic, topic.partitions)
        for found in self._logs:
            if found.topic in image.topics and (found.topic, found.partition) not in self._partitions:
                self._logs.delete(found.topic, found.partition)  # reassigned while this broker was down
        self.applied_offset = image.offset

    async def prepare(self, records: Sequence[Message]) -> None:
        """Create the files of many new partitions in a thread, before their records are committed."""
        names = self._names | {
            record.topic_id: record.name for record in records if isinstance(record, stored.TopicRecord)
        }
        new: dict[bytes, list[int]] = {}
        for record in records:
            if isinstance(record, stored.PartitionRecord) and self._local_id in record.replicas:
                new.setdefault(record.topic_id, []).append(record.partition_id)
        if sum(map(len, new.values())) >= _PREPARED_MIN:
            for topic_id, partitions in new.items():
                await self._logs.prepare(names[topic_id], partitions, topic_id)

    def apply(self, image: MetadataImage, records: Sequence[Message]) -> None:
        """Apply newly committed metadata records."""
        brokers_before = self.membership.brokers
        self._topics, self.membership.brokers = image.topics, image.brokers
        for topic_id, indexes in self._apply_records(image, records).items():
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                self._apply_topic(image, topic, indexes)
        if image.brokers is not brokers_before:
            for partition in self:
                if partition.replication is not None:
                    partition.reconsider()  # a fenced replica holds nothing up any more
        self.applied_offset = image.offset

    def _apply_records(self, image: MetadataImage, records: Sequence[Message]) -> dict[bytes, set[int]]:
        """Apply deletions and settings; returns the partitions that are new or changed, by topic id."""
        touched: dict[bytes, set[int]] = {}
        for record in records:
            match record:
                case stored.TopicRecord():
                    touched.setdefault(record.topic_id, set())
                case stored.PartitionRecord() | stored.PartitionChangeRecord():
                    touched.setdefault(record.topic_id, set()).add(record.partition_id)
                case stored.RemoveTopicRecord():
                    self._remove_topic(record.topic_id)
                case stored.ConfigRecord() if record.resource_type == ResourceType.TOPIC:
                    self._reconfigure(image, record.resource_name)
                case stored.ConfigRecord() if record.resource_type == ResourceType.BROKER:
                    self.throttles.configure(broker_settings(image, self._settings))
                    for name in image.topics:
                        self._reconfigure(image, name)
                case _:
                    pass
        return touched

    def _apply_topic(self, image: MetadataImage, topic: TopicImage, indexes: Iterable[int]) -> None:
        self._names[topic.topic_id] = topic.name
        settings: TopicSettings | None = None
        for index in indexes:
            description = topic.partitions[index]
            partition = self._partitions.get((topic.name, index))
            if self._local_id not in description.replicas:
                if partition is not None:
                    self._remove(partition)
                continue
            if partition is not None:
                self._update(partition, description)
                continue
            settings = settings or self._settings_of(image, topic.name)
            partition_log = self._open_log(topic, index, settings)
            if partition_log is None:
                continue
            partition = Partition(
                partition_log,
                description,
                topic_id=topic.topic_id,
                local_id=self._local_id,
                clock=self._clock,
                traffic=self.metrics.topic(topic.name),
                high_watermark=self._logs.high_watermarks.get((topic.name, index), 0),
                membership=self.membership,
                lag_seconds=self._settings.replica_lag_time_max_ms / 1000,
                throttles=self.throttles,
                on_proposal=self._announce_proposal,
            )
            self._partitions[topic.name, index] = partition
            for listener in self.on_leadership if partition.is_leader else self.on_following:
                listener(partition)

    def _update(self, partition: Partition, description: PartitionImage) -> None:
        """Apply a change, and announce what it means for this broker."""
        was_leader, epoch_before, leader_before = partition.is_leader, partition.leader_epoch, partition.leader_id
        isr_before = partition.isr
        partition.update(description)
        if was_leader and partition.is_leader:
            self.metrics.isr_changed(isr_before, partition.isr)
        elif was_leader:
            for listener in self.on_leadership_lost:
                listener(partition)
        if (partition.leader_epoch, partition.leader_id) != (epoch_before, leader_before):
            for listener in self.on_leadership if partition.is_leader else self.on_following:
                listener(partition)

    def _announce_proposal(self, partition: Partition) -> None:
        for listener in self.on_isr_proposal:
            listener(partition)

    def _remove(self, partition: Partition) -> None:
        """Stop hosting a partition, and delete its log."""
        del self._partitions[partition.topic, partition.index]
        for listener in self.on_removed:
            listener(partition)
        partition.retire()
        self._logs.delete(partition.topic, partition.index)

    def _open_log(self, topic: TopicImage, index: int, settings: TopicSettings) -> PartitionLog | None:
        """The log of a partition; None after a disk error, which must not affect the other partitions."""
        try:
            return self._logs.create(topic.name, index, topic.topic_id, settings)
        except BrokerError as error:
            log.error("partition is offline", extra={"topic": topic.name, "partition": index, "reason": error.message})
            self._offline[topic.name, index] = error
            return None

    def _remove_topic(self, topic_id: bytes) -> None:
        name = self._names.pop(topic_id, None)
        if name is None:
            return
        for partition in [partition for partition in self if partition.topic == name]:
            self._remove(partition)
        self._offline = {key: error for key, error in self._offline.items() if key[0] != name}
        self.guarded.pop(name, None)
        self.metrics.forget_topic(name)
        for listener in self.on_topics_removed:
            listener([name])

    def _settings_of(self, image: MetadataImage, topic: str) -> TopicSettings:
        """The effective settings of a topic; also updates `guarded`."""
        settings = topic_settings(image, topic, self._settings)
        if settings.is_guarded:
            self.guarded[topic] = settings
        else:
            self.guarded.pop(topic, None)
        return settings

    def _reconfigure(self, image: MetadataImage, topic: str) -> None:
        if topic not in image.topics:
            return
        settings = self._settings_of(image, topic)
        for index in image.topics[topic].partitions:
            partition = self._partitions.get((topic, index))
            if partition is not None:
                partition.configure(settings)
