"""Options that all three connectors have, in MirrorMaker's names."""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    CLASS,
    LIST,
    LONG,
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
from connectors.mirror.selection import Selection

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
