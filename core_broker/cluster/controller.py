"""The controller: validates changes of the cluster and writes them to the metadata log.

Every change is checked against the committed image and appended as one batch. Changes are serialised, so two clients
cannot create the same topic; a change becomes visible only when the quorum replays it.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, ParamSpec, TypeVar

from core_broker.cluster.config_rules import ConfigChange, plan_increment, plan_replacement
from core_broker.cluster.coordinators import INTERNAL_TOPICS
from core_broker.cluster.effective_settings import broker_settings
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.features import INITIAL_FEATURES, SUPPORTED_FEATURES
from core_broker.cluster.metadata import NO_LEADER, ConfigResource, MetadataImage, TopicImage
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.topic_changes import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    TopicPlanner,
    internal_topic,
    plan_more_partitions,
)
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.stored import metadata as stored
from core_broker.service.clock import Clock
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

PRODUCER_ID_BLOCK: Final = 1000
_UNFENCED: Final = -1


Prepare = Callable[[Sequence[Message]], Awaitable[None]]


class Controller:
    """The only writer of topics, configs, brokers and producer ids."""

    def __init__(
        self, quorum: MetadataQuorum, settings: BrokerSettings, clock: Clock, *, prepare: Prepare | None = None
    ) -> None:
        """`prepare` gets the records of new partitions before they are committed, for slow preparations."""
        self._quorum = quorum
        self._settings = settings
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._prepare = prepare

    @property
    def image(self) -> MetadataImage:
        """The committed state."""
        return self._quorum.image

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings including dynamic changes."""
        return broker_settings(self.image, self._settings)

    # -- brokers --

    async def register_broker(
        self, endpoints: AdvertisedEndpoints, *, log_dirs: Sequence[bytes] = (), was_clean: bool = True
    ) -> int:
        """Register this broker, once its listeners are bound; returns its epoch.

        After an unclean stop every partition it leads gets a new leader epoch, so that consumers notice that records
        they have read may be lost (KIP-320).
        """
        async with self._changing() as image:
            is_new = "metadata.version" not in image.features
            features = [
                stored.FeatureLevelRecord(name=name, feature_level=level)
                for name, level in (INITIAL_FEATURES.items() if is_new else ())
            ]
            epoch = self._quorum.end_offset + len(features)
            records: list[Message] = [
                *features,
                stored.RegisterBrokerRecord(
                    broker_id=self._settings.node_id,
                    incarnation_id=os.urandom(16),
                    broker_epoch=epoch,
                    end_points=endpoints.records(),
                    features=[
                        stored.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                        for name, (low, high) in SUPPORTED_FEATURES.items()
                    ],
                    rack=self._settings.broker_rack,
                    fenced=True,
                    log_dirs=list(log_dirs),
                ),
            ]
            records.append(
                stored.BrokerRegistrationChangeRecord(
                    broker_id=self._settings.node_id, broker_epoch=epoch, fenced=_UNFENCED
                )
            )
            records.extend(_elections(image, self._settings.node_id, everywhere=not was_clean))
            if not was_clean and image.next_producer_id:
                # The last allocation may be lost in a damaged log; its ids must not be handed out again.
                records.append(self._producer_ids(image, image.next_producer_id + PRODUCER_ID_BLOCK))
            await self._quorum.append(records)
        log.info("broker registered", extra={"broker_id": self._settings.node_id, "broker_epoch": epoch})
        return epoch

    async def unregister_broker(self, broker_id: int) -> None:
        """Remove a broker that will not return. Raises BrokerError if it is unknown or this broker itself."""
        async with self._changing() as image:
            broker = image.brokers.get(broker_id)
            if broker is None:
                text = f"Broker ID {broker_id} is not currently registered"
                raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
            if broker_id == self._settings.node_id:
                text = f"broker {broker_id} is running; stop it before unregistering it"
                raise BrokerError(ErrorCode.INVALID_REQUEST, text)
            await self._quorum.append([stored.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)])
        log.info("broker unregistered", extra={"broker_id": broker_id})

    # -- topics --

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[CreatedTopic | BrokerError]:
        """Create all valid topics in one atomic change; returns a result for each topic, in order."""
        async with self._changing() as image:
            planner = TopicPlanner(image, self.settings)
            results = [_attempt(planner.plan, topic) for topic in topics]
            if planner.records and not validate_only:
                await self._add_partitions(planner.records)
        for result in results:
            if isinstance(result, CreatedTopic) and not validate_only:
                log.info("topic created", extra={"topic": result.name, "partitions": result.partition_count})
        return results

    async def auto_create_topics(self, names: Iterable[str]) -> dict[str, CreatedTopic | BrokerError]:
        """Create topics that a client requested, with default settings; internal topics get their own."""
        missing = [name for name in dict.fromkeys(names) if name not in self.image.topics]
        topics = [self._internal(name) if name in INTERNAL_TOPICS else NewTopic(name=name) for name in missing]
        return dict(zip(missing, await self.create_topics(topics), strict=True)) if topics else {}

    async def ensure_internal_topic(self, name: str) -> TopicImage:
        """The topic of a coordinator, created if it does not exist yet."""
        if name not in self.image.topics:
            (result,) = await self.create_topics([self._internal(name)])
            # A concurrent request may have created the topic first.
            if isinstance(result, BrokerError) and name not in self.image.topics:
                raise result
        return self.image.topics[name]

    def _internal(self, name: str) -> NewTopic:
        return internal_topic(name, self.settings, broker_count=len(self.image.live_brokers()))

    async def delete_topics(self, topic_ids: Sequence[bytes]) -> list[BrokerError | None]:
        """Delete topics by id; returns a result for each, in order."""
        if not self._settings.delete_topic_enable:
            text = "topics cannot be deleted because of delete.topic.enable=false"
            return [BrokerError(ErrorCode.TOPIC_DELETION_DISABLED, text) for _ in topic_ids]
        async with self._changing() as image:
            deleted = [topic_id for topic_id in dict.fromkeys(topic_ids) if topic_id in image.topics_by_id]
            if deleted:
                await self._quorum.append([stored.RemoveTopicRecord(topic_id=topic_id) for topic_id in deleted])
        for topic_id in deleted:
            log.info("topic deleted", extra={"topic": image.topics_by_id[topic_id].name})
        return [
            None if topic_id in deleted else BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "This topic id does not exist.")
            for topic_id in topic_ids
        ]

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Add partitions to topics; returns a result for each topic, in order."""
        async with self._changing() as image:
            plans = [_attempt(plan_more_partitions, topic, image) for topic in topics]
            records = [record for plan in plans if not isinstance(plan, BrokerError) for record in plan]
            if records and not validate_only:
                await self._add_partitions(records)
        return [plan if isinstance(plan, BrokerError) else None for plan in plans]

    async def _add_partitions(self, records: Sequence[Message]) -> None:
        if self._prepare is not None:
            await self._prepare(records)
        await self._quorum.append(records)

    # -- configs --

    async def replace_configs(
        self, resources: Sequence[tuple[ConfigResource, Mapping[str, str | None]]], *, validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Replace the configs of each resource (AlterConfigs); returns a result for each, in order."""
        async with self._changing() as image:
            plans = [_attempt(plan_replacement, *resource, image, self._settings) for resource in resources]
            return await self._commit_configs(plans, validate_only=validate_only)

    async def alter_configs(
        self, resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]], *, validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Change individual configs (IncrementalAlterConfigs); returns a result for each resource, in order."""
        async with self._changing() as image:
            plans = [_attempt(plan_increment, *resource, image, self._settings) for resource in resources]
            return await self._commit_configs(plans, validate_only=validate_only)

    async def _commit_configs(
        self, plans: Sequence[list[stored.ConfigRecord] | BrokerError], *, validate_only: bool
    ) -> list[BrokerError | None]:
        records = [record for plan in plans if not isinstance(plan, BrokerError) for record in plan]
        if records and not validate_only:
            await self._quorum.append(records)
        return [plan if isinstance(plan, BrokerError) else None for plan in plans]

    # -- features and producer ids --

    async def allocate_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> range:
        """Allocate a block of producer ids that were never used before."""
        async with self._changing() as image:
            first = image.next_producer_id
            if first + count > LONG_MAX:
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been handed out")
            await self._quorum.append([self._producer_ids(image, first + count)])
        return range(first, first + count)

    def _producer_ids(self, image: MetadataImage, next_producer_id: int) -> stored.ProducerIdsRecord:
        broker = image.brokers.get(self._settings.node_id)
        epoch = -1 if broker is None else broker.epoch
        return stored.ProducerIdsRecord(
            broker_id=self._settings.node_id, broker_epoch=epoch, next_producer_id=next_producer_id
        )

    async def update_feature(self, name: str, level: int, *, validate_only: bool = False) -> None:
        """Finalise a feature at a level; 0 removes it. Raises BrokerError."""
        async with self._changing() as image:
            low, high = SUPPORTED_FEATURES.get(name, (0, -1))
            if not low <= level <= high:
                allowed = f"levels {low} to {high}" if name in SUPPORTED_FEATURES else "no such feature"
                raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, f"{name}={level}: this broker supports {allowed}")
            if not validate_only and image.features.get(name, 0) != level:
                await self._quorum.append([stored.FeatureLevelRecord(name=name, feature_level=level)])

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[MetadataImage]:
        """One change at a time, each based on all earlier ones, even those whose caller was cancelled."""
        async with self._one_at_a_time:
            await self._quorum.wait_until_idle()
            yield self._quorum.image


P = ParamSpec("P")
T = TypeVar("T")


def _attempt(plan: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | BrokerError:
    """The plan or its error: one invalid item does not stop the others of its request."""
    try:
        return plan(*args, **kwargs)
    except BrokerError as error:
        return error


def _elections(image: MetadataImage, broker_id: int, *, everywhere: bool) -> Iterator[stored.PartitionChangeRecord]:
    """Make the broker leader of its leaderless partitions; `everywhere` also begins a new epoch where it leads."""
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            waits = partition.leader_id == NO_LEADER and broker_id in (*partition.isr, *partition.elr)
            if waits or (everywhere and partition.leader_id == broker_id):
                isr = None if broker_id in partition.isr else [broker_id]
                yield stored.PartitionChangeRecord(
                    partition_id=index, topic_id=topic.topic_id, leader=broker_id, isr=isr
                )
