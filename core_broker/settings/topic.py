"""Settings of a topic: its overrides on top of the broker's settings."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.settings import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Check,
    Definition,
    Settings,
    SettingsError,
    at_least,
    between,
    one_of,
    optional,
    setting,
)
from core_broker.settings.broker import BrokerSettings
from core_broker.settings.log import (
    CLEANUP_CHECK,
    CLEANUP_POLICY,
    COMPRESSION_TYPES,
    HOUR_MS,
    TIMESTAMP_TYPES,
    WEEK_HOURS,
)
from core_broker.settings.schema_guard import STRATEGY, TOPIC_NAME
from core_broker.settings.without_effect import TIERED

_ONLY_FALSE = Check(accepts=lambda value: value is False, allowed=f"false ({TIERED})")
_REPLICAS = Check(
    accepts=lambda entries: entries == ("*",) or all(re.fullmatch(r"\d+:\d+", entry) for entry in entries),
    allowed="* or partition:broker pairs separated by commas",
)


class TopicSettings(Settings):
    """The settings of a topic. The default of each key is the broker's, under the synonyms given here."""

    segment_bytes: int = setting(
        INT, default=1 << 30, check=at_least(1 << 20), synonyms=("log.segment.bytes",), dynamic=True
    )
    """Size at which a segment is closed and the next one is started."""
    internal_segment_bytes: int | None = setting(
        optional(INT), default=None, check=at_least(100), dynamic=True, internal=True
    )
    """Overrides segment.bytes without its lower limit; for tests."""
    segment_ms: int = setting(
        LONG,
        default=WEEK_HOURS * HOUR_MS,
        check=at_least(1),
        synonyms=("log.roll.ms", "log.roll.hours"),
        dynamic=True,
    )
    """Age at which a segment is closed, even if it is small."""
    segment_jitter_ms: int = setting(
        LONG,
        default=0,
        check=at_least(0),
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        dynamic=True,
    )
    """Random time subtracted from the age at which a segment is closed, so that not all are closed at once."""
    segment_index_bytes: int = setting(
        INT, default=10 * 1024 * 1024, check=at_least(4), synonyms=("log.index.size.max.bytes",), dynamic=True
    )
    """Size of an index at which its segment is closed."""
    index_interval_bytes: int = setting(
        INT, default=4096, check=at_least(0), synonyms=("log.index.interval.bytes",), dynamic=True
    )
    """Bytes of records between two entries of an index."""
    retention_ms: int = setting(
        LONG,
        default=WEEK_HOURS * HOUR_MS,
        check=at_least(-1),
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        dynamic=True,
    )
    """Age at which segments are deleted, under cleanup.policy=delete; -1 for never."""
    retention_bytes: int = setting(LONG, default=-1, synonyms=("log.retention.bytes",), dynamic=True)
    """Size of a partition above which its oldest segments are deleted; -1 for no limit."""
    cleanup_policy: frozenset[str] = setting(
        CLEANUP_POLICY,
        default=frozenset({"delete"}),
        check=CLEANUP_CHECK,
        synonyms=("log.cleanup.policy",),
        dynamic=True,
    )
    """What happens to old segments: delete removes them, compact keeps the last record of each key, empty keeps all."""
    delete_retention_ms: int = setting(
        LONG, default=24 * HOUR_MS, check=at_least(0), synonyms=("log.cleaner.delete.retention.ms",), dynamic=True
    )
    """How long tombstones of a compacted topic are kept."""
    min_cleanable_dirty_ratio: float = setting(
        DOUBLE, default=0.5, check=between(0, 1), synonyms=("log.cleaner.min.cleanable.ratio",), dynamic=True
    )
    """Fraction of a log that must be uncompacted before it is compacted again."""
    min_compaction_lag_ms: int = setting(
        LONG, default=0, check=at_least(0), synonyms=("log.cleaner.min.compaction.lag.ms",), dynamic=True
    )
    """Minimum age of a record before compaction may remove it."""
    max_compaction_lag_ms: int = setting(
        LONG, default=LONG_MAX, check=at_least(1), synonyms=("log.cleaner.max.compaction.lag.ms",), dynamic=True
    )
    """Maximum age of a record before its log must be compacted."""
    max_message_bytes: int = setting(
        INT, default=1_048_588, check=at_least(0), synonyms=("message.max.bytes",), dynamic=True
    )
    """Largest record batch that is accepted, after compression."""
    message_timestamp_type: str = setting(
        STRING,
        default="CreateTime",
        check=one_of(*TIMESTAMP_TYPES),
        synonyms=("log.message.timestamp.type",),
        dynamic=True,
    )
    """Timestamp of a record: set by the producer (CreateTime) or by the broker (LogAppendTime)."""
    message_timestamp_before_max_ms: int = setting(
        LONG, default=LONG_MAX, check=at_least(0), synonyms=("log.message.timestamp.before.max.ms",), dynamic=True
    )
    """How far the timestamp of a record may be before the broker's clock."""
    message_timestamp_after_max_ms: int = setting(
        LONG, default=HOUR_MS, check=at_least(0), synonyms=("log.message.timestamp.after.max.ms",), dynamic=True
    )
    """How far the timestamp of a record may be ahead of the broker's clock."""
    compression_type: str = setting(
        STRING, default="producer", check=one_of(*COMPRESSION_TYPES), synonyms=("compression.type",), dynamic=True
    )
    """Compression of stored batches; `producer` keeps that of the producer."""
    compression_gzip_level: int = setting(
        INT, default=-1, check=between(-1, 9), synonyms=("compression.gzip.level",), dynamic=True
    )
    """Level when the broker compresses with gzip; -1 for the default of the library."""
    compression_lz4_level: int = setting(
        INT, default=9, check=between(1, 17), synonyms=("compression.lz4.level",), dynamic=True
    )
    """Level when the broker compresses with lz4."""
    compression_zstd_level: int = setting(
        INT, default=3, check=between(-131_072, 22), synonyms=("compression.zstd.level",), dynamic=True
    )
    """Level when the broker compresses with zstd."""
    flush_messages: int = setting(
        LONG, default=LONG_MAX, check=at_least(1), synonyms=("log.flush.interval.messages",), dynamic=True
    )
    """Number of records after which the log is flushed to disk, before they are acknowledged; 1: an ack survives power
    loss."""
    flush_ms: int = setting(
        LONG,
        default=LONG_MAX,
        check=at_least(0),
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        dynamic=True,
    )
    """Age of unflushed records at which the log is flushed to disk."""
    file_delete_delay_ms: int = setting(
        LONG, default=60_000, check=at_least(0), synonyms=("log.segment.delete.delay.ms",), dynamic=True
    )
    """How long deleted files stay on disk."""
    min_insync_replicas: int = setting(
        INT, default=1, check=at_least(1), synonyms=("min.insync.replicas",), dynamic=True
    )
    """In-sync replicas that must have a record before a write with acks=all is acknowledged; with fewer, it is
    rejected."""
    unclean_leader_election_enable: bool = setting(
        BOOLEAN, default=False, synonyms=("unclean.leader.election.enable",), dynamic=True
    )
    """Allow a replica that is not in sync to become leader, which may lose records."""
    preallocate: bool = setting(BOOLEAN, default=False, synonyms=("log.preallocate",), dynamic=True)
    """Reserve disk space for a whole segment when its first batch is written."""
    leader_replication_throttled_replicas: tuple[str, ...] = setting(LIST, default=(), check=_REPLICAS, dynamic=True)
    """Leaders that count for leader.replication.throttled.rate, as partition:broker, or * for all."""
    follower_replication_throttled_replicas: tuple[str, ...] = setting(LIST, default=(), check=_REPLICAS, dynamic=True)
    """Followers that count for follower.replication.throttled.rate, as partition:broker, or * for all."""
    remote_storage_enable: bool = setting(BOOLEAN, default=False, check=_ONLY_FALSE, dynamic=True)
    """Keep old segments in tiered storage."""
    local_retention_ms: int = setting(LONG, default=-2, check=at_least(-2), dynamic=True, without_effect=TIERED)
    """Age of local segments under tiered storage; -2 for retention.ms."""
    local_retention_bytes: int = setting(LONG, default=-2, check=at_least(-2), dynamic=True, without_effect=TIERED)
    """Size of local segments under tiered storage; -2 for retention.bytes."""
    remote_log_copy_disable: bool = setting(BOOLEAN, default=False, dynamic=True, without_effect=TIERED)
    """Stop copying to tiered storage."""
    remote_log_delete_on_disable: bool = setting(BOOLEAN, default=False, dynamic=True, without_effect=TIERED)
    """Delete the copies in tiered storage."""
    confluent_key_schema_validation: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Reject records whose key does not have the id of a schema registered for the topic."""
    confluent_value_schema_validation: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Reject records whose value does not have the id of a schema registered for the topic."""
    confluent_key_subject_name_strategy: str = setting(STRATEGY, default=TOPIC_NAME, dynamic=True)
    """Subject under which the schema of a key must be registered: named after the topic, the record, or both."""
    confluent_value_subject_name_strategy: str = setting(STRATEGY, default=TOPIC_NAME, dynamic=True)
    """Subject under which the schema of a value must be registered: named after the topic, the record, or both."""

    _MILLISECONDS: ClassVar[dict[str, int]] = {"hours": HOUR_MS, "minutes": 60_000}

    @property
    def is_guarded(self) -> bool:
        """Whether the schema ids of records are checked before they are appended."""
        return self.confluent_key_schema_validation or self.confluent_value_schema_validation

    @classmethod
    def resolve_change(cls, overrides: Mapping[str, str], broker: BrokerSettings) -> Self:
        """As `resolve`, for a change requested by a client: it must also be possible on this broker."""
        settings = cls.resolve(overrides, broker)
        if settings.is_guarded and not broker.confluent_schema_registry_url:
            side = "key" if settings.confluent_key_schema_validation else "value"
            text = f"confluent.{side}.schema.validation=true: set confluent.schema.registry.url on the broker first"
            raise BrokerError(ErrorCode.INVALID_CONFIG, text)
        return settings

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerSettings) -> Self:
        """The settings of a topic with these overrides on this broker.

        Raises BrokerError INVALID_CONFIG naming every key that is wrong, its value, and what is allowed.
        """
        try:
            chosen = cls.parse(overrides)
        except SettingsError as error:
            raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None
        values = {d.name: cls.inherited_value(d, broker) for d in cls.DEFINITIONS.values()}
        values.update({cls.DEFINITIONS[key].name: getattr(chosen, cls.DEFINITIONS[key].name) for key in chosen.set})
        if chosen.internal_segment_bytes is not None:
            values["segment_bytes"] = chosen.internal_segment_bytes
        _check_compaction_lag(values)
        return cls(**values)

    @classmethod
    def inherited_value(cls, definition: Definition, broker: BrokerSettings) -> Any:
        """The value of a topic key when the topic does not set it: the first synonym of the broker that has one."""
        for synonym in definition.synonyms:
            value = getattr(broker, synonym.replace(".", "_"))
            if value is not None:
                return cls.in_topic_units(synonym, value)
        return definition.default

    @classmethod
    def in_topic_units(cls, synonym: str, value: Any) -> Any:
        """A broker's value as the topic key counts it: hours and minutes become milliseconds, -1 stays "for ever"."""
        factor = cls._MILLISECONDS.get(synonym.rpartition(".")[2])
        return value if factor is None or value < 0 else value * factor


def _check_compaction_lag(values: Mapping[str, Any]) -> None:
    low, high = values["min_compaction_lag_ms"], values["max_compaction_lag_ms"]
    if low > high:
        text = f"min.compaction.lag.ms={low}: must be at most max.compaction.lag.ms={high}"
        raise BrokerError(ErrorCode.INVALID_CONFIG, text)
