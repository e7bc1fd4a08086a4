"""All partitions hosted by this broker, kept in sync with the metadata log."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from core_broker.cluster.effective_settings import topic_settings
from core_broker.cluster.metadata import MetadataImage, ResourceType, TopicImage
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings, TopicSettings

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
        self._metrics = metrics
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._offline: dict[tuple[str, int], BrokerError] = {}
        self._names: dict[bytes, str] = {}
        self.guarded: dict[str, TopicSettings] = {}
        """Settings of the topics whose records must have registered schema ids; other topics are not included."""
        self.on_leadership: list[PartitionListener] = []
        """Called when this broker becomes the leader of a partition in a new epoch."""
        self.on_removed: list[PartitionListener] = []
        self.on_topics_removed: list[Callable[[Sequence[str]], None]] = []
        # From now on only committed records are deleted or cleaned.
        logs.high_watermark_of = self.high_watermark_of

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition, or None when this broker does not host it."""
        return self._partitions.get((topic, index))

    def get(self, topic: str, index: int) -> Partition:
        """The partition if this broker leads it; otherwise raises an error that makes clients refresh metadata."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._offline.get((topic, index)) or BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.leader_id != self._local_id:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id."""
        return self._names.get(topic_id)

    def high_watermark_of(self, of: PartitionLog) -> int:
        """Up to where a log may be cleaned or deleted; records above may still be truncated."""
        partition = self._partitions.get((of.topic, of.partition))
        return of.start_offset if partition is None else partition.high_watermark

    def synchronise(self, image: MetadataImage) -> None:
        """Host the partitions of the image; called once, after the replay at start."""
        for topic in image.topics.values():
            self._apply_topic(image, topic)

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
        touched: dict[bytes, None] = {}
        for record in records:
            match record:
                case stored.TopicRecord() | stored.PartitionRecord() | stored.PartitionChangeRecord():
                    touched[record.topic_id] = None
                case stored.RemoveTopicRecord():
                    self._remove_topic(record.topic_id)
                case stored.ConfigRecord() if record.resource_type == ResourceType.TOPIC:
                    self._reconfigure(image, record.resource_name)
                case stored.ConfigRecord() if record.resource_type == ResourceType.BROKER:
                    for name in image.topics:
                        self._reconfigure(image, name)
                case _:
                    pass
        for topic_id in touched:
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                self._apply_topic(image, topic)

    def _apply_topic(self, image: MetadataImage, topic: TopicImage) -> None:
        self._names[topic.topic_id] = topic.name
        settings: TopicSettings | None = None
        for index, description in topic.partitions.items():
            if self._local_id not in description.replicas:
                continue
            partition = self._partitions.get((topic.name, index))
            if partition is not None:
                is_new_epoch = description.leader_epoch != partition.leader_epoch
                partition.update(description)
            else:
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
                    traffic=self._metrics.topic(topic.name),
                )
                self._partitions[topic.name, index] = partition
                is_new_epoch = True
            if is_new_epoch and partition.is_leader:
                for listener in self.on_leadership:
                    listener(partition)

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
        for key in [key for key in self._partitions if key[0] == name]:
            partition = self._partitions.pop(key)
            for on_removed in self.on_removed:
                on_removed(partition)
            partition.retire()
            self._logs.delete(*key)
        self._offline = {key: error for key, error in self._offline.items() if key[0] != name}
        self.guarded.pop(name, None)
        self._metrics.forget_topic(name)
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
