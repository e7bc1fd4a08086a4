"""Topics of the target: created, extended and configured like those of the source, with their ACLs."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from connectors.mirror.policy import Policy
from connectors.mirror.selection import Names, Selection
from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, NotFound, Rejected
from core_broker.client.models import Config

log = logging.getLogger(__name__)

_OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
_COMPACTED: Final = {"cleanup.policy": "compact"}


class TopicSync:
    """Makes topics of the target like those of the source; every call may raise a ClientError."""

    def __init__(self, source: Admin, target: Admin, *, replication_factor: int, excluded: Iterable[str]) -> None:
        self._source = source
        self._target = target
        self._replication_factor = replication_factor
        self._copied = Names([".*"], excluded=excluded)

    def ensure(self, wanted: Mapping[str, tuple[str, int]]) -> dict[str, int]:
        """Create and extend topics; `wanted` maps names in the target to the name and partitions in the source.

        Returns how many partitions each has in the target, without topics that cannot be created.
        """
        existing = self._target.topic_names()
        missing = {name: origin for name, origin in wanted.items() if name not in existing}
        configs = self._source.configs_of_topics([topic for topic, _ in missing.values()])
        for name, (topic, partitions) in missing.items():
            if self._create(name, partitions, self._own_configs(configs.get(topic, ()))):
                existing[name] = partitions
        for name, (_, partitions) in wanted.items():
            if name in existing and existing[name] < partitions:
                try:
                    self._target.grow_topic(name, partitions)
                    existing[name] = partitions
                except (Rejected, NotFound) as error:
                    log.error("a mirrored topic cannot be extended", extra={"topic": name, "error": str(error)})
        return {name: existing[name] for name in wanted if name in existing}

    def sync_configs(self, topics: Mapping[str, str]) -> None:
        """Give topics of the target the configs of the source's; `topics` are names in the target, by the source's."""
        wanted = self._source.configs_of_topics(topics)
        found = self._target.configs_of_topics([topics[topic] for topic in wanted])
        changes: dict[str, tuple[Mapping[str, str], Iterable[str]]] = {}
        for topic, configs in wanted.items():
            name = topics[topic]
            if name not in found:
                continue
            new, old = self._own_configs(configs), self._own_configs(found[name])
            put = {key: value for key, value in new.items() if old.get(key) != value}
            if put or old.keys() - new.keys():
                changes[name] = (put, old.keys() - new.keys())
        outcome = self._target.alter_configs_of_topics(changes) if changes else {}
        for name, error in outcome.items():
            extra = {"topic": name, "error": str(error)}
            if error is None:
                log.info("configs of a mirrored topic were updated", extra=extra)
            else:
                log.warning("configs of a mirrored topic cannot be updated", extra=extra)

    def _own_configs(self, configs: Iterable[Config]) -> dict[str, str]:
        """Configs that are set for the topic itself and that are copied."""
        return {
            config.key: config.value
            for config in configs
            if config.source == _OF_TOPIC
            and config.value is not None
            and not config.is_read_only
            and not config.is_sensitive
            and config.key in self._copied
        }

    def _create(self, name: str, partitions: int, configs: Mapping[str, str]) -> bool:
        replicas = self._replication_factor
        try:
            try:
                self._target.create_replicated_topic(
                    name, partitions=partitions, replicas_wanted=replicas, configs=configs
                )
            except Rejected as error:
                # Perhaps a config that this cluster does not know: a copy without it is better than none.
                log.warning("a mirrored topic is created without configs", extra={"topic": name, "error": str(error)})
                self._target.create_replicated_topic(name, partitions=partitions, replicas_wanted=replicas)
        except AlreadyExists:
            return False  # Created at the same time by another client: its partitions are counted next time.
        except Rejected as error:
            log.error("a mirrored topic cannot be created", extra={"topic": name, "error": str(error)})
            return False
        log.info("a mirrored topic was created", extra={"topic": name, "partitions": partitions})
        return True


def ensure_internal(admin: Admin, name: str, *, replication_factor: int) -> None:
    """Create a compacted topic of one partition, unless it exists."""
    if name in admin.topic_names():
        return
    try:
        admin.create_replicated_topic(name, partitions=1, replicas_wanted=replication_factor, configs=_COMPACTED)
    except AlreadyExists:
        pass


def sync_acls(source: Admin, target: Admin, *, selection: Selection, policy: Policy) -> int:
    """Add the ACLs of topics to their copies, as MirrorMaker does; returns how many were missing.

    Rejected without an authorizer.
    """
    topics = AclFilter(resource_type=ResourceType.TOPIC, pattern_type=PatternType.LITERAL)
    wanted: dict[Acl, None] = {}
    for acl in source.access.acls(topics):
        is_allowed = acl.permission is Permission.ALLOW
        # Only the mirror writes copies.
        if acl.resource_name in selection and not (is_allowed and acl.operation is Operation.WRITE):
            operation = Operation.READ if is_allowed and acl.operation is Operation.ALL else acl.operation
            wanted[replace(acl, resource_name=policy.remote(acl.resource_name), operation=operation)] = None
    known = set(target.access.acls(topics)) if wanted else set()
    missing = [acl for acl in wanted if acl not in known]
    if missing:
        target.access.create(missing)
    return len(missing)
