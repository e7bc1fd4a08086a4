"""Options of the three connectors, in MirrorMaker's names."""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    Check,
    Config,
    Importance,
    Problem,
    at_least,
    between,
    not_empty,
    one_of,
    option,
)
from connectors.mirror.policy import POLICIES, Policy, policy_of
from connectors.mirror.selection import Names, Selection

CLUSTERS, TOPICS, INTERNAL = "Clusters", "Topics", "Internal topics"
SOURCE, TARGET = "source", "target"
REPLICAS: Final = at_least(1)
SECONDS: Final = between(1, 365 * 86_400)
CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
BYTE_ARRAY_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


def _are_patterns(patterns: Sequence[str]) -> bool:
    try:
        return bool([re.compile(pattern) for pattern in patterns] or True)
    except re.error:
        return False


PATTERNS: Final = Check(accepts=_are_patterns, allowed="regular expressions separated by commas")
_ALIAS: Final = Check(
    accepts=lambda text: re.fullmatch(r"[a-zA-Z0-9._-]{1,100}", text) is not None,
    allowed="1 to 100 letters, digits, dots, underscores and hyphens, as topics have them",
)
_POLICY: Final = Check(
    accepts=lambda name: name.rpartition(".")[2] in POLICIES,
    allowed=f"one of {', '.join(POLICIES)}, with or without their package",
)


class MirrorConfig(Config):
    """What all three connectors need to know."""

    PREFIXES: ClassVar[tuple[str, ...]] = (
        "source.cluster.",
        "target.cluster.",
        *(f"{side}{client}." for side in ("", "source.", "target.") for client in ("consumer", "producer", "admin")),
        "offset-syncs.topic.",
        "checkpoints.topic.",
        "heartbeats.topic.",
    )

    source_cluster_alias: str = option(STRING, check=_ALIAS, importance=Importance.HIGH, group=CLUSTERS)
    """What the cluster is called that is read from; part of the names of topics and of offsets."""
    target_cluster_alias: str = option(
        STRING, default="target", check=_ALIAS, importance=Importance.HIGH, group=CLUSTERS
    )
    """What the cluster is called that is written to: the one of the Connect worker."""
    source_cluster_bootstrap_servers: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=CLUSTERS
    )
    """Brokers of the source. Other `source.cluster.*` keys are properties of all clients there."""
    target_cluster_bootstrap_servers: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=CLUSTERS
    )
    """Brokers of the target. Other `target.cluster.*` keys are properties of all clients there."""
    enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW)
    """Whether anything is done at all."""
    replication_policy_class: str = option(
        CLASS,
        default="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        check=_POLICY,
        importance=Importance.LOW,
        group=TOPICS,
        recommended=tuple(f"org.apache.kafka.connect.mirror.{name}" for name in POLICIES),
    )
    """How topics are called in the target: DefaultReplicationPolicy (`alias.topic`) or IdentityReplicationPolicy."""
    replication_policy_separator: str = option(
        STRING,
        default=".",
        check=Check(
            accepts=lambda text: re.fullmatch(r"[a-zA-Z0-9._-]{1,20}", text) is not None,
            allowed="letters, digits, dots, underscores and hyphens, as topics have them",
        ),
        importance=Importance.LOW,
        group=TOPICS,
    )
    """What stands between the alias and the topic."""
    replication_policy_internal_topic_separator_enabled: bool = option(
        BOOLEAN, default=True, key="replication.policy.internal.topic.separator.enabled", importance=Importance.LOW
    )
    """Whether the separator is that of internal topics, too; else theirs is a dot."""
    heartbeats_topic_name: str = option(
        STRING, default="heartbeats", key="heartbeats.topic.name", check=_ALIAS, importance=Importance.LOW
    )
    """The topic of heartbeats."""
    admin_timeout_ms: int = option(LONG, default=60_000, check=between(1, 3_600_000), importance=Importance.LOW)
    """How long questions to a cluster may take."""

    @property
    def policy(self) -> Policy:
        """How topics are called."""
        return policy_of(
            self.replication_policy_class,
            source=self.source_cluster_alias,
            separator=self.replication_policy_separator,
            internal_separator=self.replication_policy_separator
            if self.replication_policy_internal_topic_separator_enabled
            else ".",
            heartbeats=self.heartbeats_topic_name,
        )

    @override
    def problems(self) -> Iterable[Problem]:
        if self.source_cluster_alias == self.target_cluster_alias:
            told = (
                f"Invalid value {self.target_cluster_alias} for configuration target.cluster.alias: must be another one"
            )
            yield Problem("target.cluster.alias", f"{told} than source.cluster.alias")


class SelectingConfig(MirrorConfig):
    """What the connectors need to know that choose topics."""

    topics: tuple[str, ...] = option(LIST, default=(".*",), check=PATTERNS, importance=Importance.HIGH, group=TOPICS)
    """Topics to mirror: names and regular expressions, separated by commas."""
    topics_exclude: tuple[str, ...] = option(
        LIST,
        default=(r".*[\-\.]internal", r".*\.replica", "__.*"),
        check=PATTERNS,
        aliases=("topics.blacklist",),
        importance=Importance.HIGH,
        group=TOPICS,
    )
    """Topics that are left out, whatever `topics` says: names and regular expressions, separated by commas."""
    heartbeats_replication_enabled: bool = option(
        BOOLEAN, default=True, key="heartbeats.replication.enabled", importance=Importance.LOW, group=TOPICS
    )
    """Whether the heartbeats of the source are mirrored, even if `topics` does not name them."""
    emit_offset_syncs_enabled: bool = option(
        BOOLEAN, default=True, key="emit.offset-syncs.enabled", importance=Importance.LOW, group=INTERNAL
    )
    """Whether it is written down which offset of the source is which of the target; checkpoints need it."""
    offset_syncs_topic_location: str = option(
        STRING,
        default=SOURCE,
        key="offset-syncs.topic.location",
        check=one_of(SOURCE, TARGET),
        importance=Importance.LOW,
        group=INTERNAL,
    )
    """The cluster with the topic of offset syncs: `source` or `target`."""
    consumer_poll_timeout_ms: int = option(LONG, default=1000, check=between(1, 60_000), importance=Importance.LOW)
    """How long a poll waits for records, a second at most."""
    add_source_alias_to_metrics: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Accepted and without effect: metrics are those of every connector."""

    @property
    def selection(self) -> Selection:
        """Which topics are mirrored."""
        return Selection(
            self.policy,
            target=self.target_cluster_alias,
            topics=self.topics,
            excluded=self.topics_exclude,
            with_heartbeats=self.heartbeats_replication_enabled,
        )

    @property
    def offset_syncs_topic(self) -> str:
        """The topic of offset syncs; named after the cluster where it is not."""
        is_there = self.offset_syncs_topic_location == SOURCE
        return self.policy.offset_syncs_topic(self.target_cluster_alias if is_there else self.source_cluster_alias)


def converter_advice(config: Config) -> Iterable[Problem]:
    """Warnings about converters that do not hand bytes through."""
    for key in CONVERTERS:
        name = config.given.get(key, "").strip()
        if name.rpartition(".")[2] != "ByteArrayConverter":
            reason = f"is {name}" if name else "is not set, so that the worker's is used"
            yield Problem(key, f"{key} {reason}: only {BYTE_ARRAY_CONVERTER} carries bytes as they are")


ISOLATION = "isolation.level"
_ISOLATION_NEEDED = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be "
    "replicated from the source cluster to the target cluster."
)


class MirrorSourceConfig(SelectingConfig):
    """What can be told to the connector that mirrors topics."""

    ASSIGNED: ClassVar[str] = "task.assigned.partitions"

    refresh_topics_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=TOPICS)
    """Whether new topics and partitions are looked for."""
    refresh_topics_interval_seconds: int = option(
        LONG, default=600, check=SECONDS, importance=Importance.LOW, group=TOPICS
    )
    """How often."""
    sync_topic_configs_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=TOPICS)
    """Whether topics of the target get the configs of those of the source, now and then."""
    sync_topic_configs_interval_seconds: int = option(
        LONG, default=600, check=SECONDS, importance=Importance.LOW, group=TOPICS
    )
    """How often."""
    config_properties_exclude: tuple[str, ...] = option(
        LIST,
        default=(
            r"follower\.replication\.throttled\.replicas",
            r"leader\.replication\.throttled\.replicas",
            r"message\.timestamp\.difference\.max\.ms",
            r"message\.timestamp\.type",
            r"unclean\.leader\.election\.enable",
            r"min\.insync\.replicas",
        ),
        check=PATTERNS,
        aliases=("config.properties.blacklist",),
        importance=Importance.HIGH,
        group=TOPICS,
    )
    """Configs of topics that are left alone: names and regular expressions, separated by commas."""
    sync_topic_acls_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=TOPICS)
    """Whether who may read a topic of the source may read its copy, where clusters have an authorizer."""
    sync_topic_acls_interval_seconds: int = option(
        LONG, default=600, check=SECONDS, importance=Importance.LOW, group=TOPICS
    )
    """How often."""
    replication_factor: int = option(INT, default=2, check=REPLICAS, importance=Importance.LOW, group=TOPICS)
    """Replicas of new topics of the target; fewer where it has fewer brokers."""
    offset_syncs_topic_replication_factor: int = option(
        SHORT,
        default=3,
        key="offset-syncs.topic.replication.factor",
        check=REPLICAS,
        importance=Importance.LOW,
        group=INTERNAL,
    )
    """Replicas of the topic of offset syncs; fewer where there are fewer brokers."""
    offset_lag_max: int = option(LONG, default=100, check=at_least(0), importance=Importance.LOW, group=INTERNAL)
    """How many records at most are written before an offset sync is due; whatever is left is synced every second."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.is_exactly_once_required and self.isolation_level != "read_committed":
            yield Problem("exactly.once.support", _ISOLATION_NEEDED)
        if not self.emit_offset_syncs_enabled and any(key.startswith("offset-syncs.topic.") for key in self.given):
            told = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"
            yield Problem("emit.offset-syncs.enabled", told)

    @property
    def is_exactly_once_required(self) -> bool:
        """Whether the operator insists on exactly once."""
        return self.given.get("exactly.once.support", "").strip().lower() == "required"

    @property
    def isolation_level(self) -> str:
        """Whether records of unfinished and aborted transactions are mirrored; they are not, unless it is said."""
        prefixes = ("source.consumer.", "consumer.", "source.cluster.")
        return next((self.given[p + ISOLATION] for p in prefixes if p + ISOLATION in self.given), "read_committed")


_GROUPS = "Groups"


class MirrorCheckpointConfig(SelectingConfig):
    """What can be told to the connector that translates what groups have committed."""

    ASSIGNED: ClassVar[str] = "task.assigned.groups"

    groups: tuple[str, ...] = option(LIST, default=(".*",), check=PATTERNS, importance=Importance.HIGH, group=_GROUPS)
    """Groups whose offsets are translated: names and regular expressions, separated by commas."""
    groups_exclude: tuple[str, ...] = option(
        LIST,
        default=("console-consumer-.*", "connect-.*", "__.*"),
        check=PATTERNS,
        aliases=("groups.blacklist",),
        importance=Importance.HIGH,
        group=_GROUPS,
    )
    """Groups that are left out, whatever `groups` says."""
    refresh_groups_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_GROUPS)
    """Whether new groups are looked for."""
    refresh_groups_interval_seconds: int = option(
        LONG, default=600, check=SECONDS, importance=Importance.LOW, group=_GROUPS
    )
    """How often."""
    emit_checkpoints_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_GROUPS)
    """Whether translated offsets are written to the topic of checkpoints."""
    emit_checkpoints_interval_seconds: int = option(
        LONG, default=60, check=SECONDS, importance=Importance.LOW, group=_GROUPS
    )
    """How often."""
    sync_group_offsets_enabled: bool = option(BOOLEAN, default=False, importance=Importance.LOW, group=_GROUPS)
    """Whether groups of the target get the translated offsets, as long as they have no members there."""
    sync_group_offsets_interval_seconds: int = option(
        LONG, default=60, check=SECONDS, importance=Importance.LOW, group=_GROUPS
    )
    """How often."""
    checkpoints_topic_replication_factor: int = option(
        SHORT, default=3, check=REPLICAS, importance=Importance.LOW, group=INTERNAL
    )
    """Replicas of the topic of checkpoints; fewer where the target has fewer brokers."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if not self.emit_checkpoints_enabled and not self.sync_group_offsets_enabled:
            told = (
                "MirrorCheckpointConnector can't run with both of emit.checkpoints.enabled and "
                "sync.group.offsets.enabled set to false"
            )
            yield Problem("emit.checkpoints.enabled", told)
        if not self.emit_offset_syncs_enabled:
            told = "MirrorCheckpointConnector can't run while emit.offset-syncs.enabled is set to false"
            yield Problem("emit.offset-syncs.enabled", told)

    @property
    def wanted_groups(self) -> Names:
        """Which groups are meant."""
        return Names(self.groups, excluded=self.groups_exclude)


class MirrorHeartbeatConfig(MirrorConfig):
    """What can be told to the connector of heartbeats."""

    emit_heartbeats_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW)
    """Whether heartbeats are written."""
    emit_heartbeats_interval_seconds: int = option(LONG, default=1, check=SECONDS, importance=Importance.LOW)
    """How often."""
    heartbeats_topic_replication_factor: int = option(
        SHORT, default=3, check=REPLICAS, importance=Importance.LOW, group=INTERNAL
    )
    """Replicas of the topic of heartbeats; fewer where the target has fewer brokers."""
