"""Creates the topics of a source before their first record, with the settings of the connector's groups."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.patience import connect_error
from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, ClientError

_PREFIX = "topic.creation."
_DEFAULT = "default"
_OWN = ("include", "exclude", "partitions", "replication.factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """Topics that are created with the same settings."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replication_factor: int
    configs: dict[str, str]

    def has(self, topic: str) -> bool:
        """Whether a topic belongs to the group."""
        return any(re.fullmatch(pattern, topic) for pattern in self.include) and not any(
            re.fullmatch(pattern, topic) for pattern in self.exclude
        )


def groups_of(config: SourceConnectorConfig) -> tuple[TopicGroup, ...]:
    """The groups in order of precedence; none when the connector does not create topics."""
    if f"{_PREFIX}{_DEFAULT}.partitions" not in config.given and not config.topic_creation_groups:
        return ()
    fallback = config.below(f"{_PREFIX}{_DEFAULT}.")
    groups = []
    for name in (*config.topic_creation_groups, _DEFAULT):
        own = config.below(f"{_PREFIX}{name}.")
        group = TopicGroup(
            name=name,
            include=(".*",) if name == _DEFAULT else _split(own.get("include", "")),
            exclude=_split(own.get("exclude", "")),
            partitions=int(own.get("partitions") or fallback.get("partitions") or -1),
            replication_factor=int(own.get("replication.factor") or fallback.get("replication.factor") or -1),
            configs={key: value for key, value in own.items() if key not in _OWN},
        )
        groups.append(group)
    return tuple(groups)


class TopicCreation:
    """Makes sure that topics exist; for the thread of one task."""

    def __init__(self, groups: tuple[TopicGroup, ...], admin: Admin) -> None:
        self._groups = groups
        self._admin = admin
        self._existing: set[str] = set()

    def ensure(self, topics: Iterable[str]) -> None:
        """Create missing topics; ConnectError when that is refused, RetriableError when the cluster does not answer."""
        missing = set(topics) - self._existing
        if not missing or not self._groups:
            return
        try:
            known = self._admin.topic_names()
            for topic in missing - known.keys():
                group = next(group for group in self._groups if group.has(topic))
                with suppress(AlreadyExists):  # another task was faster
                    self._admin.create_topic(
                        topic,
                        partitions=group.partitions,
                        replication_factor=group.replication_factor,
                        configs=group.configs,
                    )
        except ClientError as error:
            raise connect_error(f"Topics {', '.join(sorted(missing))} could not be created", error) from error
        self._existing |= missing


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
