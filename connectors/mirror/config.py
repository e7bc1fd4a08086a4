"""Options of the three connectors, in MirrorMaker's names."""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Literal

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
from connect.api.places import Place, client_places
from connectors.mirror.policy import POLICIES, Policy, policy_of
from connectors.mirror.selection import Names, Selection

_OF_CONNECT: Final = ("key.converter", "value.converter", "header.converter", "transforms", "source.", "target.")
"""Keys that are checked elsewhere, or below."""
CLUSTERS, TOPICS, INTERNAL = "Clusters", "Topics", "Internal topics"
Side = Literal["source", "target"]
REPLICAS: Final = at_least(1)
SECONDS: Final = between(1, 365 * 86_400)


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
    """Options of all three connectors."""

    PREFIXES: ClassVar[tuple[str, ...]] = (
        "source.cluster.",
        "target.cluster.",
        *(f"{side}{client}." for side in ("", "source.", "target.") for client in ("consumer", "producer", "admin")),
        "offset-syncs.topic.",
        "checkpoints.topic.",
        "heartbeats.topic.",
    )

    source_cluster_alias: str = option(STRING, check=_ALIAS, importance=Importance.HIGH, group=CLUSTERS)
    """The alias of the source cluster; part of the names of topics, and of offsets."""
    target_cluster_alias: str = option(
        STRING, default="target", check=_ALIAS, importance=Importance.HIGH, group=CLUSTERS
    )
    """The alias of the target cluster, which is the Connect worker's."""
    source_cluster_bootstrap_servers: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=CLUSTERS
    )
    """Brokers of the source. Other `source.cluster.*` keys are properties of all its clients."""
    target_cluster_bootstrap_servers: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=CLUSTERS
    )
    """Brokers of the target. Other `target.cluster.*` keys are properties of all its clients."""
    enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW)
    """Whether the connector does anything."""
    replication_policy_class: str = option(
        CLASS,
        default="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        check=_POLICY,
        importance=Importance.LOW,
        group=TOPICS,
        recommended=tuple(f"org.apache.kafka.connect.mirror.{name}" for name in POLICIES),
    )
    """The names of topics in the target: DefaultReplicationPolicy (`alias.topic`) or IdentityReplicationPolicy."""
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
    """The text between the alias and the topic."""
    replication_policy_internal_topic_separator_enabled: bool = option(
        BOOLEAN, default=True, key="replication.policy.internal.topic.separator.enabled", importance=Importance.LOW
    )
    """Whether internal topics use the same separator; otherwise a dot."""
    heartbeats_topic_name: str = option(
        STRING, default="heartbeats", key="heartbeats.topic.name", check=_ALIAS, importance=Importance.LOW
    )
    """The topic of heartbeats."""
    admin_timeout_ms: int = option(LONG, default=60_000, check=between(1, 3_600_000), importance=Importance.LOW)
    """How long an admin request may take."""

    @property
    def policy(self) -> Policy:
        """The names of topics."""
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
    def places(self) -> Iterable[Place]:
        yield from client_places((key, text) for key, text in self.given.items() if not key.startswith(_OF_CONNECT))
        for side in ("source", "target"):
            given = self.below(f"{side}.cluster.")
            yield from client_places(given.items(), prefix=f"{side}.cluster.")
            for role in ("consumer", "producer", "admin"):
                yield from client_places(self.below(f"{side}.{role}.").items(), prefix=f"{side}.{role}.")

    @override
    def problems(self) -> Iterable[Problem]:
        if self.source_cluster_alias == self.target_cluster_alias:
            reason = "must differ from source.cluster.alias"
            yield Problem.invalid("target.cluster.alias", self.target_cluster_alias, reason)


class SelectingConfig(MirrorConfig):
    """Options of the connectors that select topics."""

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
    """Topics that are not mirrored, whatever `topics` says: names and regular expressions, separated by commas."""
    heartbeats_replication_enabled: bool = option(
        BOOLEAN, default=True, key="heartbeats.replication.enabled", importance=Importance.LOW, group=TOPICS
    )
    """Whether the heartbeats of the source are mirrored, even if `topics` does not match them."""
    emit_offset_syncs_enabled: bool = option(
        BOOLEAN, default=True, key="emit.offset-syncs.enabled", importance=Importance.LOW, group=INTERNAL
    )
    """Whether the mapping of offsets from source to target is stored, which checkpoints require."""
    offset_syncs_topic_location: str = option(
        STRING,
        default="source",
        key="offset-syncs.topic.location",
        check=one_of("source", "target"),
        importance=Importance.LOW,
        group=INTERNAL,
    )
    """The cluster with the topic of offset syncs: `source` or `target`."""
    consumer_poll_timeout_ms: int = option(LONG, default=1000, check=between(1, 60_000), importance=Importance.LOW)
    """How long a poll waits for records, at most a second."""
    add_source_alias_to_metrics: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Accepted, but without effect: metrics are those of every connector."""

    @property
    def selection(self) -> Selection:
        """The topics that are mirrored."""
        return Selection(
            self.policy,
            target=self.target_cluster_alias,
            topics=self.topics,
            excluded=self.topics_exclude,
            with_heartbeats=self.heartbeats_replication_enabled,
        )

    @property
    def offset_syncs_side(self) -> Side:
        """The cluster with the topic of offset syncs."""
        return "source" if self.offset_syncs_topic_location == "source" else "target"

    @property
    def offset_syncs_topic(self) -> str:
        """The topic of offset syncs; named after the other cluster."""
        is_source = self.offset_syncs_side == "source"
        return self.policy.offset_syncs_topic(self.target_cluster_alias if is_source else self.source_cluster_alias)


ISOLATION = "isolation.level"
_ISOLATION_NEEDED = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be "
    "replicated from the source cluster to the target cluster."
)


class MirrorSourceConfig(SelectingConfig):
    """Options of MirrorSource."""

    ASSIGNED: ClassVar[str] = "task.assigned.partitions"

    refresh_topics_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=TOPICS)
    """Whether to look for new topics and partitions."""
    refresh_topics_interval_seconds: int = option(
        LONG, default=600, check=SECONDS, importance=Importance.LOW, group=TOPICS
    )
    """How often."""
    sync_topic_configs_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=TOPICS)
    """Whether configs of topics are copied to the target at intervals."""
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
    """Configs of topics that are not copied: names and regular expressions, separated by commas."""
    sync_topic_acls_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=TOPICS)
    """Whether ACLs of topics are copied, where clusters have an authorizer."""
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
    """Most records of a partition between two offset syncs; the last record is synced within a second in any case."""

    @override
    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.is_exactly_once_required and self.isolation_level != "read_committed":
            yield Problem("exactly.once.support", _ISOLATION_NEEDED)
        if not self.emit_offset_syncs_enabled and any(key.startswith("offset-syncs.topic.") for key in self.given):
            text = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"
            yield Problem("emit.offset-syncs.enabled", text)

    @property
    def is_exactly_once_required(self) -> bool:
        """Whether exactly-once delivery is required."""
        return self.given.get("exactly.once.support", "").strip().lower() == "required"

    @property
    def isolation_level(self) -> str:
        """read_uncommitted also mirrors records of open and aborted transactions; the default is read_committed."""
        prefixes = ("source.consumer.", "consumer.", "source.cluster.")
        return next((self.given[p + ISOLATION] for p in prefixes if p + ISOLATION in self.given), "read_committed")


_GROUPS = "Groups"


class MirrorCheckpointConfig(SelectingConfig):
    """Options of MirrorCheckpoint."""

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
    """Groups whose offsets are not translated, whatever `groups` says."""
    refresh_groups_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW, group=_GROUPS)
    """Whether to look for new groups."""
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
    """Whether translated offsets are committed for groups of the target, as long as they have no members there."""
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
            text = (
                "MirrorCheckpointConnector can't run with both of emit.checkpoints.enabled and "
                "sync.group.offsets.enabled set to false"
            )
            yield Problem("emit.checkpoints.enabled", text)
        if not self.emit_offset_syncs_enabled:
            text = "MirrorCheckpointConnector can't run while emit.offset-syncs.enabled is set to false"
            yield Problem("emit.offset-syncs.enabled", text)

    @property
    def wanted_groups(self) -> Names:
        """The groups whose offsets are translated."""
        return Names(self.groups, excluded=self.groups_exclude)


class MirrorHeartbeatConfig(MirrorConfig):
    """Options of MirrorHeartbeat."""

    emit_heartbeats_enabled: bool = option(BOOLEAN, default=True, importance=Importance.LOW)
    """Whether heartbeats are written."""
    emit_heartbeats_interval_seconds: int = option(LONG, default=1, check=SECONDS, importance=Importance.LOW)
    """How often."""
    heartbeats_topic_replication_factor: int = option(
        SHORT, default=3, check=REPLICAS, importance=Importance.LOW, group=INTERNAL
    )
    """Replicas of the topic of heartbeats; fewer where the target has fewer brokers."""
