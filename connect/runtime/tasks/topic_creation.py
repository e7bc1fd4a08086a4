"""Creates the topics of a source before its first record, in the way that the connector's groups say."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from connect.api.config import Problem
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.patience import connect_error
from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, ClientError

_PREFIX = "topic.creation."
_DEFAULT = "default"
_OWN = ("include", "exclude", "partitions", "replication.factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """Topics that are created alike."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replication_factor: int
    configs: dict[str, str]

    def has(self, topic: str) -> bool:
        """Whether a topic is meant."""
        return any(re.fullmatch(pattern, topic) for pattern in self.include) and not any(
            re.fullmatch(pattern, topic) for pattern in self.exclude
        )


def groups_of(config: SourceConnectorConfig) -> tuple[TopicGroup, ...]:
    """The groups in the order in which they are asked; none when the connector does not create topics."""
    if f"{_PREFIX}{_DEFAULT}.partitions" not in config.given and not config.topic_creation_groups:
        return ()
    return tuple(_group(config, name) for name in (*config.topic_creation_groups, _DEFAULT))


def problems(config: SourceConnectorConfig) -> Iterable[Problem]:
    """What is wrong with the groups."""
    given = config.below(_PREFIX)
    names = [*config.topic_creation_groups]
    if names or any(key.startswith(f"{_DEFAULT}.") for key in given):
        for key in ("partitions", "replication.factor"):
            if f"{_DEFAULT}.{key}" not in given:
                full = f"{_PREFIX}{_DEFAULT}.{key}"
                yield Problem(full, f'Missing required configuration "{full}" which has no default value.')
        names.append(_DEFAULT)
    for name in names:
        if name != _DEFAULT and f"{name}.include" not in given:
            full = f"{_PREFIX}{name}.include"
            yield Problem(full, f'Missing required configuration "{full}" which has no default value.')
        yield from _group_problems(name, given)


def _group_problems(name: str, given: dict[str, str]) -> Iterable[Problem]:
    for key in ("partitions", "replication.factor"):
        text = given.get(f"{name}.{key}")
        if text is not None and not re.fullmatch(r"-1|[1-9][0-9]{0,8}", text.strip()):
            full = f"{_PREFIX}{name}.{key}"
            message = f"Invalid value {text} for configuration {full}: must be -1 (the cluster's default) or at least 1"
            yield Problem(full, message)
    for key in ("include", "exclude"):
        for pattern in _listed(given.get(f"{name}.{key}", "")):
            try:
                re.compile(pattern)
            except re.error as error:
                full = f"{_PREFIX}{name}.{key}"
                yield Problem(full, f"Invalid value {pattern} for configuration {full}: no regular expression: {error}")


class TopicCreation:
    """Sees to it that topics are there; for the thread of one task."""

    def __init__(self, groups: tuple[TopicGroup, ...], admin: Admin) -> None:
        self._groups = groups
        self._admin = admin
        self._there: set[str] = set()

    def ensure(self, topics: Iterable[str]) -> None:
        """Create what is missing; ConnectError when that is refused, RetriableError when nobody answers."""
        missing = set(topics) - self._there
        if not missing or not self._groups:
            return
        try:
            known = self._admin.topic_names()
            for topic in missing - known.keys():
                self._create(topic)
        except ClientError as error:
            raise connect_error(f"Topics {', '.join(sorted(missing))} could not be created", error) from error
        self._there |= missing

    def _create(self, topic: str) -> None:
        group = next(group for group in self._groups if group.has(topic))
        try:
            self._admin.create_topic(
                topic,
                partitions=group.partitions,
                replication_factor=group.replication_factor,
                configs=group.configs,
            )
        except AlreadyExists:
            pass  # another task was quicker


def _group(config: SourceConnectorConfig, name: str) -> TopicGroup:
    own, fallback = config.below(f"{_PREFIX}{name}."), config.below(f"{_PREFIX}{_DEFAULT}.")
    return TopicGroup(
        name=name,
        include=(".*",) if name == _DEFAULT else _listed(own.get("include", "")),
        exclude=_listed(own.get("exclude", "")),
        partitions=int(own.get("partitions") or fallback.get("partitions") or -1),
        replication_factor=int(own.get("replication.factor") or fallback.get("replication.factor") or -1),
        configs={key: value for key, value in own.items() if key not in _OWN},
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
