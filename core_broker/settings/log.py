"""Settings of the log: what topics inherit, and how the background work on disk is done."""

from core_broker.service.settings import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    LONG_MAX,
    STRING,
    Check,
    Kind,
    Settings,
    at_least,
    between,
    one_of,
    optional,
    setting,
)

HOUR_MS = 3_600_000
WEEK_HOURS = 168
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _policies(text: str) -> frozenset[str]:
    return frozenset(part.strip().lower() for part in text.split(",") if part.strip())


# An empty policy keeps everything for ever (KIP-1161).
CLEANUP_POLICY = Kind(
    name="list",
    wire=7,
    read=_policies,
    write=lambda policies: ",".join(sorted(policies)),
    allowed="compact, delete, both or none",
)
CLEANUP_CHECK = Check(
    accepts=lambda policies: policies <= {"compact", "delete"},
    allowed="compact, delete, both separated by a comma, or empty",
)


class LogSettings(Settings):
    """Defaults for topics (each has a topic key of its own) and the log's background work."""

    log_segment_bytes: int = setting(INT, default=1 << 30, check=at_least(1 << 20), dynamic=True)
    """Size at which a segment is closed and the next one begun."""
    log_roll_ms: int | None = setting(optional(LONG), default=None, check=at_least(1), dynamic=True)
    """Age at which a segment is closed, though it may be small. Not set: log.roll.hours."""
    log_roll_hours: int = setting(INT, default=WEEK_HOURS, check=at_least(1))
    """Age at which a segment is closed; log.roll.ms goes first."""
    log_roll_jitter_ms: int | None = setting(optional(LONG), default=None, check=at_least(0), dynamic=True)
    """Random time taken off the age of a segment, so that not all roll at once. Not set: log.roll.jitter.hours."""
    log_roll_jitter_hours: int = setting(INT, default=0, check=at_least(0))
    """Random time taken off the age of a segment; log.roll.jitter.ms goes first."""
    log_index_size_max_bytes: int = setting(INT, default=10 * 1024 * 1024, check=at_least(4), dynamic=True)
    """Size of an index at which its segment is closed."""
    log_index_interval_bytes: int = setting(INT, default=4096, check=at_least(0), dynamic=True)
    """Bytes of records between two entries of an index."""
    log_retention_ms: int | None = setting(optional(LONG), default=None, check=at_least(-1), dynamic=True)
    """Age at which segments are deleted; -1 for never. Not set: log.retention.minutes."""
    log_retention_minutes: int | None = setting(optional(INT), default=None, check=at_least(-1))
    """Age at which segments are deleted; log.retention.ms goes first. Not set: log.retention.hours."""
    log_retention_hours: int = setting(INT, default=WEEK_HOURS, check=at_least(-1))
    """Age at which segments are deleted; log.retention.minutes goes first."""
    log_retention_bytes: int = setting(LONG, default=-1, dynamic=True)
    """Size of a partition above which its oldest segments are deleted; -1 for no limit."""
    log_retention_check_interval_ms: int = setting(LONG, default=300_000, check=at_least(1))
    """How often segments are checked for deletion."""
    log_cleanup_policy: frozenset[str] = setting(
        CLEANUP_POLICY, default=frozenset({"delete"}), check=CLEANUP_CHECK, dynamic=True
    )
    """What becomes of old segments: delete drops them, compact keeps the last record of each key."""
    log_segment_delete_delay_ms: int = setting(LONG, default=60_000, check=at_least(0), dynamic=True)
    """How long a deleted file stays on disk."""
    log_flush_interval_messages: int = setting(LONG, default=LONG_MAX, check=at_least(1), dynamic=True)
    """Records after which a partition is forced to disk. The default leaves it to the system, as Kafka does."""
    log_flush_interval_ms: int | None = setting(optional(LONG), default=None, check=at_least(0), dynamic=True)
    """Age of records after which a partition is forced to disk. Not set: log.flush.scheduler.interval.ms."""
    log_flush_scheduler_interval_ms: int = setting(LONG, default=LONG_MAX, check=at_least(1))
    """Stands in for log.flush.interval.ms where that is not set; partitions are checked every second in any case."""
    log_flush_offset_checkpoint_interval_ms: int = setting(INT, default=60_000, check=at_least(0))
    """How often the recovery point, up to which everything is on disk, is written down."""
    log_flush_start_offset_checkpoint_interval_ms: int = setting(INT, default=60_000, check=at_least(0))
    """How often the log start offset is written down."""
    log_preallocate: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Reserve the whole size of a segment on disk with its first batch."""
    num_recovery_threads_per_data_dir: int = setting(INT, default=2, check=at_least(1))
    """Threads per log folder that recover partitions after an unclean stop. A change while the broker runs is stored
    and shown, but only what the broker is started with counts: stored changes are read after the recovery."""

    message_max_bytes: int = setting(INT, default=1_048_588, check=at_least(0), dynamic=True)
    """Largest record batch that is accepted, after compression."""
    log_message_timestamp_type: str = setting(
        STRING, default="CreateTime", check=one_of(*TIMESTAMP_TYPES), dynamic=True
    )
    """Whose time a record carries: its producer's (CreateTime) or the broker's (LogAppendTime)."""
    log_message_timestamp_before_max_ms: int = setting(LONG, default=LONG_MAX, check=at_least(0), dynamic=True)
    """How far before the broker's time a record may claim to have been created."""
    log_message_timestamp_after_max_ms: int = setting(LONG, default=HOUR_MS, check=at_least(0), dynamic=True)
    """How far after the broker's time a record may claim to have been created."""
    compression_type: str = setting(STRING, default="producer", check=one_of(*COMPRESSION_TYPES), dynamic=True)
    """How batches are stored; producer keeps them as they came."""
    compression_gzip_level: int = setting(INT, default=-1, check=between(-1, 9), dynamic=True)
    """Level when the broker compresses with gzip; -1 for the library's choice."""
    compression_lz4_level: int = setting(INT, default=9, check=between(1, 17), dynamic=True)
    """Level when the broker compresses with lz4."""
    compression_zstd_level: int = setting(INT, default=3, check=between(-131_072, 22), dynamic=True)
    """Level when the broker compresses with zstd."""

    log_cleaner_enable: bool = setting(BOOLEAN, default=True)
    """Run compaction. Turned off, topics with cleanup.policy=compact grow without end."""
    log_cleaner_threads: int = setting(
        INT, default=1, check=at_least(1), dynamic=True, without_effect="one partition is compacted at a time"
    )
    """Threads that compact partitions."""
    log_cleaner_backoff_ms: int = setting(LONG, default=15_000, check=at_least(0), dynamic=True)
    """Pause of the compaction when there is nothing to do."""
    log_cleaner_io_max_bytes_per_second: float = setting(DOUBLE, default=1.7976931348623157e308, dynamic=True)
    """Most bytes per second that compaction reads and writes."""
    log_cleaner_dedupe_buffer_size: int = setting(LONG, default=128 * 1024 * 1024, check=at_least(1), dynamic=True)
    """Memory for the keys of one pass of compaction; a larger log takes several passes."""
    log_cleaner_delete_retention_ms: int = setting(LONG, default=24 * HOUR_MS, check=at_least(0), dynamic=True)
    """How long a tombstone of a compacted topic can still be read."""
    log_cleaner_min_cleanable_ratio: float = setting(DOUBLE, default=0.5, check=between(0, 1), dynamic=True)
    """Share of a log that must be new before it is compacted again."""
    log_cleaner_min_compaction_lag_ms: int = setting(LONG, default=0, check=at_least(0), dynamic=True)
    """Age below which a record is never compacted away."""
    log_cleaner_max_compaction_lag_ms: int = setting(LONG, default=LONG_MAX, check=at_least(1), dynamic=True)
    """Age at which a record must have been considered by compaction."""
