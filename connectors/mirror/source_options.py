"""Options of the connector that mirrors topics."""

from collections.abc import Iterable
from typing import ClassVar

from typing_extensions import override

from connect.api.config import BOOLEAN, INT, LIST, LONG, SHORT, Importance, Problem, at_least, option
from connectors.mirror.options import INTERNAL, PATTERNS, REPLICAS, SECONDS, TOPICS, SelectingConfig

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
