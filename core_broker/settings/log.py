"""Settings of the log: defaults of topics, and the background work on disk."""

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
    """Defaults of topics, which have a key of their own for each, and the background work on the log."""

    log_segment_bytes: int = setting(INT, default=1 << 30, check=at_least(1 << 20), dynamic=True)
    """Size at which a segment is closed and the next one is started."""
    log_roll_ms: int | None = setting(optional(LONG), default=None, check=at_least(1), dynamic=True)
    """Age at which a segment is closed, even if it is small. Not set: log.roll.hours."""
    log_roll_hours: int = setting(INT, default=WEEK_HOURS, check=at_least(1))
    """Age at which a segment is closed; log.roll.ms takes precedence."""
    log_roll_jitter_ms: int | None = setting(optional(LONG), default=None, check=at_least(0), dynamic=True)
    """Random time subtracted from the age at which a segment is closed, so that not all are closed at once. Not set:
    log.roll.jitter.hours."""
    log_roll_jitter_hours: int = setting(INT, default=0, check=at_least(0))
    """Random time subtracted from the age at which a segment is closed; log.roll.jitter.ms takes precedence."""
    log_index_size_max_bytes: int = setting(INT, default=10 * 1024 * 1024, check=at_least(4), dynamic=True)
    """Size of an index at which its segment is closed."""
    log_index_interval_bytes: int = setting(INT, default=4096, check=at_least(0), dynamic=True)
    """Bytes of records between two entries of an index."""
    log_retention_ms: int | None = setting(optional(LONG), default=None, check=at_least(-1), dynamic=True)
    """Age at which segments are deleted; -1 for never. Not set: log.retention.minutes."""
    log_retention_minutes: int | None = setting(optional(INT), default=None, check=at_least(-1))
    """Age at which segments are deleted; log.retention.ms takes precedence. Not set: log.retention.hours."""
    log_retention_hours: int = setting(INT, default=WEEK_HOURS, check=at_least(-1))
    """Age at which segments are deleted; log.retention.minutes takes precedence."""
    log_retention_bytes: int = setting(LONG, default=-1, dynamic=True)
    """Size of a partition above which its oldest segments are deleted; -1 for no limit."""
    log_retention_check_interval_ms: int = setting(LONG, default=300_000, check=at_least(1))
    """How often segments are checked for deletion."""
    log_cleanup_policy: frozenset[str] = setting(
        CLEANUP_POLICY, default=frozenset({"delete"}), check=CLEANUP_CHECK, dynamic=True
    )
    """What happens to old segments: delete removes them, compact keeps the last record of each key."""
    log_segment_delete_delay_ms: int = setting(LONG, default=60_000, check=at_least(0), dynamic=True)
    """How long deleted files stay on disk."""
    log_flush_interval_messages: int = setting(LONG, default=LONG_MAX, check=at_least(1), dynamic=True)
    """Number of records after which a partition is flushed to disk. By default the operating system decides, as in
    Kafka."""
    log_flush_interval_ms: int | None = setting(optional(LONG), default=None, check=at_least(0), dynamic=True)
    """Age of unflushed records at which a partition is flushed to disk. Not set: log.flush.scheduler.interval.ms."""
    log_flush_scheduler_interval_ms: int = setting(LONG, default=LONG_MAX, check=at_least(1))
    """Used if log.flush.interval.ms is not set; partitions are checked every second in any case."""
    log_flush_offset_checkpoint_interval_ms: int = setting(INT, default=60_000, check=at_least(0))
    """How often the recovery points, up to which everything is on disk, are checkpointed."""
    log_flush_start_offset_checkpoint_interval_ms: int = setting(INT, default=60_000, check=at_least(0))
    """How often the log start offsets are checkpointed."""
    log_preallocate: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Reserve disk space for a whole segment when its first batch is written."""
    num_recovery_threads_per_data_dir: int = setting(INT, default=2, check=at_least(1))
    """Threads per log directory that recover partitions after an unclean stop. A change at run time is stored and
    shown, but only the value the broker was started with is used: stored changes are read after the recovery."""

    message_max_bytes: int = setting(INT, default=1_048_588, check=at_least(0), dynamic=True)
    """Largest record batch that is accepted, after compression."""
    log_message_timestamp_type: str = setting(
        STRING, default="CreateTime", check=one_of(*TIMESTAMP_TYPES), dynamic=True
    )
    """Timestamp of a record: set by the producer (CreateTime) or by the broker (LogAppendTime)."""
    log_message_timestamp_before_max_ms: int = setting(LONG, default=LONG_MAX, check=at_least(0), dynamic=True)
    """How far the timestamp of a record may be before the broker's clock."""
    log_message_timestamp_after_max_ms: int = setting(LONG, default=HOUR_MS, check=at_least(0), dynamic=True)
    """How far the timestamp of a record may be ahead of the broker's clock."""
    compression_type: str = setting(STRING, default="producer", check=one_of(*COMPRESSION_TYPES), dynamic=True)
    """Compression of stored batches; `producer` keeps that of the producer."""
    compression_gzip_level: int = setting(INT, default=-1, check=between(-1, 9), dynamic=True)
    """Level when the broker compresses with gzip; -1 for the default of the library."""
    compression_lz4_level: int = setting(INT, default=9, check=between(1, 17), dynamic=True)
    """Level when the broker compresses with lz4."""
    compression_zstd_level: int = setting(INT, default=3, check=between(-131_072, 22), dynamic=True)
    """Level when the broker compresses with zstd."""

    log_cleaner_enable: bool = setting(BOOLEAN, default=True)
    """Run compaction. If disabled, topics with cleanup.policy=compact grow without limit."""
    log_cleaner_threads: int = setting(
        INT, default=1, check=at_least(1), dynamic=True, without_effect="one partition is compacted at a time"
    )
    """Threads that compact partitions."""
    log_cleaner_backoff_ms: int = setting(LONG, default=15_000, check=at_least(0), dynamic=True)
    """How long compaction pauses when there is nothing to do."""
    log_cleaner_io_max_bytes_per_second: float = setting(DOUBLE, default=1.7976931348623157e308, dynamic=True)
    """Maximum bytes per second that compaction reads and writes."""
    log_cleaner_dedupe_buffer_size: int = setting(LONG, default=128 * 1024 * 1024, check=at_least(1), dynamic=True)
    """Memory for the keys of one compaction pass; a larger log needs several passes."""
    log_cleaner_delete_retention_ms: int = setting(LONG, default=24 * HOUR_MS, check=at_least(0), dynamic=True)
    """How long tombstones of a compacted topic are kept."""
    log_cleaner_min_cleanable_ratio: float = setting(DOUBLE, default=0.5, check=between(0, 1), dynamic=True)
    """Fraction of a log that must be uncompacted before it is compacted again."""
    log_cleaner_min_compaction_lag_ms: int = setting(LONG, default=0, check=at_least(0), dynamic=True)
    """Minimum age of a record before compaction may remove it."""
    log_cleaner_max_compaction_lag_ms: int = setting(LONG, default=LONG_MAX, check=at_least(1), dynamic=True)
    """Maximum age of a record before its log must be compacted."""
