"""The state of the cluster, replayed from `__cluster_metadata`: brokers, topics, configs, features.

An image never changes once it is published: `MetadataDraft` copies what a batch of records touches and shares the rest.
So a request that holds an image sees one consistent state, and caches may compare images by identity.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

import msgspec

from core_broker.cluster.carried_records import CarriedKey, carried
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored

NO_LEADER: Final = -1
_LEADER_UNCHANGED: Final = -2

ConfigResource = tuple[int, str]
"""Resource type and name."""


class ResourceType(IntEnum):
    """Resources that have configs, with their numbers in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class EndpointImage(msgspec.Struct, frozen=True):
    """Where clients of one listener reach a broker."""

    listener: str
    host: str
    port: int
    security_protocol: int


class BrokerImage(msgspec.Struct, frozen=True):
    """A registered broker."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[EndpointImage, ...]
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    features: tuple[tuple[str, int, int], ...] = ()
    """The features the broker supports: name, lowest and highest level."""

    def endpoint(self, listener: str) -> EndpointImage | None:
        """The endpoint of a listener, if the broker has that listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class ControllerImage(msgspec.Struct, frozen=True):
    """A registered controller, which may or may not be a voter of the quorum (KIP-919)."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[EndpointImage, ...]
    features: tuple[tuple[str, int, int], ...] = ()
    """The features the controller supports: name, lowest and highest level."""

    def endpoint(self, listener: str) -> EndpointImage | None:
        """The endpoint of a listener, if the controller has that listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class PartitionImage(msgspec.Struct, frozen=True):
    """The replicas and the leader of a partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    """Eligible leader replicas (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    directories: tuple[bytes, ...] = ()


class TopicImage(msgspec.Struct, frozen=True):
    """A topic and its partitions."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionImage]


class MetadataImage(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster at one offset of the metadata log. Read-only."""

    cluster_id: str
    offset: int = -1
    """Offset of the last record that this image contains."""
    epoch: int = 0
    """Leader epoch of that record."""
    brokers: dict[int, BrokerImage] = {}
    controllers: dict[int, ControllerImage] = {}
    topics: dict[str, TopicImage] = {}
    topics_by_id: dict[bytes, TopicImage] = {}
    configs: dict[ConfigResource, dict[str, str]] = {}
    features: dict[str, int] = {}
    next_producer_id: int = 0
    carried: dict[CarriedKey, Message] = {}
    """Records that only other kinds of controllers use."""

    def config_of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The configs set for a resource; empty if there are none."""
        return self.configs.get((resource_type, name), {})

    def is_live(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def live_brokers(self) -> list[BrokerImage]:
        """The brokers that clients may use, by id."""
        return sorted((b for b in self.brokers.values() if not b.is_fenced), key=lambda b: b.broker_id)


class MetadataDraft:
    """The next image under construction: applies records, and shares what they do not touch."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._brokers: dict[int, BrokerImage] | None = None
        self._controllers = image.controllers
        self._carried = image.carried
        self._topics: dict[str, TopicImage] | None = None
        self._by_id: dict[bytes, TopicImage] = image.topics_by_id
        self._own_topics: set[bytes] = set()
        self._configs: dict[ConfigResource, dict[str, str]] | None = None
        self._own_configs: set[ConfigResource] = set()
        self._features: dict[str, int] | None = None
        self._next_producer_id = image.next_producer_id

    def replay(self, records: Iterable[Message]) -> None:
        """Apply records in their order."""
        for record in records:
            self.apply(record)

    def apply(self, record: Message) -> None:
        """Apply one record; kinds that say nothing about the state are skipped."""
        match record:
            case (
                stored.TopicRecord()
                | stored.RemoveTopicRecord()
                | stored.PartitionRecord()
                | stored.PartitionChangeRecord()
                | stored.ClearElrRecord()
            ):
                self._apply_topic(record)
            case stored.ConfigRecord():
                self._apply_config(record)
            case stored.RegisterBrokerRecord():
                self._brokers_draft()[record.broker_id] = BrokerImage(
                    broker_id=record.broker_id,
                    epoch=record.broker_epoch,
                    incarnation_id=record.incarnation_id,
                    endpoints=tuple(
                        EndpointImage(e.name, e.host, e.port, e.security_protocol) for e in record.end_points
                    ),
                    rack=record.rack,
                    is_fenced=record.fenced,
                    in_controlled_shutdown=record.in_controlled_shutdown,
                    log_dirs=tuple(record.log_dirs),
                    features=tuple((f.name, f.min_supported_version, f.max_supported_version) for f in record.features),
                )
            case stored.RegisterControllerRecord():
                self._controllers = {**self._controllers, record.controller_id: _controller(record)}
            case stored.UnregisterBrokerRecord():
                self._brokers_draft().pop(record.broker_id, None)
            case stored.BrokerRegistrationChangeRecord():
                self._change_broker(record)
            case stored.FenceBrokerRecord() | stored.UnfenceBrokerRecord():
                self._set_broker(record.id, is_fenced=isinstance(record, stored.FenceBrokerRecord))
            case stored.FeatureLevelRecord():
                self._apply_feature(record)
            case stored.ProducerIdsRecord():
                self._next_producer_id = record.next_producer_id
            case _:
                self._carry(record)

    def finish(self, *, offset: int, epoch: int) -> MetadataImage:
        """The image; the draft must not be used afterwards."""
        image = self._image
        return MetadataImage(
            cluster_id=image.cluster_id,
            offset=offset,
            epoch=epoch,
            brokers=image.brokers if self._brokers is None else self._brokers,
            controllers=self._controllers,
            topics=image.topics if self._topics is None else self._topics,
            topics_by_id=self._by_id,
            configs=image.configs if self._configs is None else self._configs,
            features=image.features if self._features is None else self._features,
            next_producer_id=self._next_producer_id,
            carried=self._carried,
        )

    # -- topics --

    def _apply_topic(
        self,
        record: stored.TopicRecord
        | stored.RemoveTopicRecord
        | stored.PartitionRecord
        | stored.PartitionChangeRecord
        | stored.ClearElrRecord,
    ) -> None:
        match record:
            case stored.TopicRecord():
                self._put_topic(TopicImage(record.name, record.topic_id, {}))
            case stored.RemoveTopicRecord():
                self._remove_topic(record.topic_id)
            case stored.PartitionRecord():
                if (partitions := self._partitions_draft(record.topic_id)) is not None:
                    partitions[record.partition_id] = PartitionImage(
                        replicas=tuple(record.replicas),
                        isr=tuple(record.isr),
                        leader_id=record.leader,
                        leader_epoch=record.leader_epoch,
                        partition_epoch=record.partition_epoch,
                        elr=tuple(record.eligible_leader_replicas or ()),
                        last_known_elr=tuple(record.last_known_elr or ()),
                        adding_replicas=tuple(record.adding_replicas),
                        removing_replicas=tuple(record.removing_replicas),
                        leader_recovery_state=record.leader_recovery_state,
                        directories=tuple(record.directories),
                    )
            case stored.PartitionChangeRecord():
                partitions = self._partitions_draft(record.topic_id)
                if partitions is not None and record.partition_id in partitions:
                    partitions[record.partition_id] = apply_change(partitions[record.partition_id], record)
            case stored.ClearElrRecord():
                self._clear_elr(record.topic_name)

    def _topics_draft(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self._image.topics)
            self._by_id = dict(self._image.topics_by_id)
        return self._topics

    def _put_topic(self, topic: TopicImage) -> None:
        self._topics_draft()[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._own_topics.add(topic.topic_id)

    def _remove_topic(self, topic_id: bytes) -> None:
        topics = self._topics_draft()
        topic = self._by_id.pop(topic_id, None)
        if topic is None:
            return
        topics.pop(topic.name, None)
        self._own_topics.discard(topic_id)
        configs = (ResourceType.TOPIC, topic.name)
        self._configs_draft().pop(configs, None)
        self._own_configs.discard(configs)

    def _partitions_draft(self, topic_id: bytes) -> dict[int, PartitionImage] | None:
        """The partitions of a topic, as a dictionary owned by this draft; None for an unknown topic."""
        topic = self._by_id.get(topic_id)
        if topic is None:
            return None
        if topic_id not in self._own_topics:
            topic = TopicImage(topic.name, topic_id, dict(topic.partitions))
            self._put_topic(topic)
        return topic.partitions

    def _clear_elr(self, topic_name: str) -> None:
        topics = self._topics_draft()
        names = [topic_name] if topic_name else list(topics)
        for name in names:
            if name in topics and (partitions := self._partitions_draft(topics[name].topic_id)) is not None:
                for index, partition in partitions.items():
                    partitions[index] = msgspec.structs.replace(partition, elr=(), last_known_elr=())

    # -- brokers, configs, features --

    def _brokers_draft(self) -> dict[int, BrokerImage]:
        if self._brokers is None:
            self._brokers = dict(self._image.brokers)
        return self._brokers

    def _set_broker(self, broker_id: int, **changes: object) -> None:
        brokers = self._brokers_draft()
        if broker_id in brokers:
            brokers[broker_id] = msgspec.structs.replace(brokers[broker_id], **changes)

    def _change_broker(self, record: stored.BrokerRegistrationChangeRecord) -> None:
        changes: dict[str, object] = {}
        if record.fenced:
            changes["is_fenced"] = record.fenced > 0
        if record.in_controlled_shutdown:
            changes["in_controlled_shutdown"] = True
        if record.log_dirs:
            changes["log_dirs"] = tuple(record.log_dirs)
        self._set_broker(record.broker_id, **changes)

    def _carry(self, record: Message) -> None:
        entry = carried(record)
        if entry is None:
            return
        key, kept = entry
        if self._carried is self._image.carried:
            self._carried = dict(self._carried)
        if kept is None:
            self._carried.pop(key, None)
        else:
            self._carried[key] = kept

    def _configs_draft(self) -> dict[ConfigResource, dict[str, str]]:
        if self._configs is None:
            self._configs = dict(self._image.configs)
        return self._configs

    def _apply_config(self, record: stored.ConfigRecord) -> None:
        configs = self._configs_draft()
        resource = (record.resource_type, record.resource_name)
        if resource not in self._own_configs:
            configs[resource] = dict(configs.get(resource, {}))
            self._own_configs.add(resource)
        if record.value is not None:
            configs[resource][record.name] = record.value
            return
        configs[resource].pop(record.name, None)
        if not configs[resource]:
            del configs[resource]
            self._own_configs.discard(resource)

    def _apply_feature(self, record: stored.FeatureLevelRecord) -> None:
        if self._features is None:
            self._features = dict(self._image.features)
        if record.feature_level:
            self._features[record.name] = record.feature_level
        else:
            self._features.pop(record.name, None)


def _controller(record: stored.RegisterControllerRecord) -> ControllerImage:
    return ControllerImage(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(EndpointImage(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
        features=tuple((f.name, f.min_supported_version, f.max_supported_version) for f in record.features),
    )


def apply_change(old: PartitionImage, record: stored.PartitionChangeRecord) -> PartitionImage:
    """Apply a change: every change raises the partition epoch, and one that names a leader the leader epoch, too."""
    has_leader = record.leader != _LEADER_UNCHANGED
    return PartitionImage(
        replicas=_new_or(record.replicas, old.replicas),
        isr=_new_or(record.isr, old.isr),
        leader_id=record.leader if has_leader else old.leader_id,
        leader_epoch=old.leader_epoch + 1 if has_leader else old.leader_epoch,
        partition_epoch=old.partition_epoch + 1,
        elr=_new_or(record.eligible_leader_replicas, old.elr),
        last_known_elr=_new_or(record.last_known_elr, old.last_known_elr),
        adding_replicas=_new_or(record.adding_replicas, old.adding_replicas),
        removing_replicas=_new_or(record.removing_replicas, old.removing_replicas),
        leader_recovery_state=(
            old.leader_recovery_state if record.leader_recovery_state < 0 else record.leader_recovery_state
        ),
        directories=old.directories if record.directories is None else tuple(record.directories),
    )


def _new_or(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)
