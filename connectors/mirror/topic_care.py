"""Topics of the target: created, grown and configured as those of the source."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from connectors.mirror.selection import Names
from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, ClientError, NotFound, Rejected
from core_broker.client.models import Config

log = logging.getLogger(__name__)

_OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
_COMPACTED: Final = {"cleanup.policy": "compact"}


class TopicCare:
    """Makes topics of the target what they are in the source; every call may raise a ClientError."""

    def __init__(self, source: Admin, target: Admin, *, replication_factor: int, excluded: Iterable[str]) -> None:
        self._source = source
        self._target = target
        self._replication_factor = replication_factor
        self._copied = Names([".*"], excluded=excluded)

    def ensure(self, wanted: Mapping[str, tuple[str, int]]) -> dict[str, int]:
        """Create and grow topics (by their name in the target: their name in the source, and how many partitions they
        have there); gives how many partitions the target has of each, and leaves out those that cannot be made."""
        there = self._target.topic_names()
        missing = {name: origin for name, origin in wanted.items() if name not in there}
        configs = self._source.configs_of_topics([topic for topic, _ in missing.values()])
        for name, (topic, partitions) in missing.items():
            if self._created(name, partitions, self._settled(configs.get(topic, ()))):
                there[name] = partitions
        for name, (_, partitions) in wanted.items():
            if name in there and there[name] < partitions and self._grown(name, partitions):
                there[name] = partitions
        return {name: there[name] for name in wanted if name in there}

    def sync_configs(self, topics: Mapping[str, str]) -> None:
        """Give topics of the target (by their name in the source) the configs that those of the source have."""
        wanted = self._source.configs_of_topics(topics)
        found = self._target.configs_of_topics([topics[topic] for topic in wanted])
        changes: dict[str, tuple[Mapping[str, str], Iterable[str]]] = {}
        for topic, configs in wanted.items():
            name = topics[topic]
            if name not in found:
                continue
            new, old = self._settled(configs), self._settled(found[name])
            put = {key: value for key, value in new.items() if old.get(key) != value}
            if put or old.keys() - new.keys():
                changes[name] = (put, old.keys() - new.keys())
        outcome = self._target.alter_configs_of_topics(changes) if changes else {}
        for name, error in outcome.items():
            extra = {"topic": name, "error": str(error)}
            if error is None:
                log.info("a mirrored topic has the configs of its original", extra=extra)
            else:
                log.warning("the configs of a mirrored topic cannot be set", extra=extra)

    def _settled(self, configs: Iterable[Config]) -> dict[str, str]:
        """What was set for the topic itself, as far as it is copied."""
        return {
            config.key: config.value
            for config in configs
            if config.source == _OF_TOPIC
            and config.value is not None
            and not config.is_read_only
            and not config.is_sensitive
            and config.key in self._copied
        }

    def _created(self, name: str, partitions: int, configs: Mapping[str, str]) -> bool:
        replicas = replicas_for(self._target, self._replication_factor)
        try:
            try:
                self._target.create_topic(name, partitions=partitions, replication_factor=replicas, configs=configs)
            except Rejected as error:
                # A config that this cluster does not know: the data is worth more.
                log.warning("a topic is created without configs", extra={"topic": name, "error": str(error)})
                self._target.create_topic(name, partitions=partitions, replication_factor=replicas)
        except AlreadyExists:
            return False  # Somebody else was quicker: how many partitions it has is seen next time.
        except Rejected as error:
            log.error("a topic cannot be mirrored", extra={"topic": name, "error": str(error)})
            return False
        log.info("a topic was created", extra={"topic": name, "partitions": partitions})
        return True

    def _grown(self, name: str, partitions: int) -> bool:
        try:
            self._target.grow_topic(name, partitions)
        except (Rejected, NotFound) as error:
            log.error("a topic cannot get more partitions", extra={"topic": name, "error": str(error)})
            return False
        return True


def ensure_internal(admin: Admin, name: str, *, replication_factor: int) -> None:
    """Create a compacted topic of one partition, unless it is there."""
    if name in admin.topic_names():
        return
    try:
        replicas = replicas_for(admin, replication_factor)
        admin.create_topic(name, partitions=1, replication_factor=replicas, configs=_COMPACTED)
    except AlreadyExists:
        pass


def replicas_for(admin: Admin, wanted: int) -> int:
    """As many replicas as wanted, or as there are brokers."""
    try:
        return max(1, min(wanted, len(admin.cluster().brokers)))
    except ClientError:
        return wanted
