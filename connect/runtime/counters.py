"""What is counted of one task; the names are those of Kafka Connect's metrics."""

import msgspec


class TaskCounters(msgspec.Struct, kw_only=True):
    """Counts since the task started. Written by the task's thread alone, read by others as they please."""

    source_record_poll: int = 0
    source_record_write: int = 0
    source_record_active: int = 0
    sink_record_read: int = 0
    sink_record_send: int = 0
    sink_record_lag_max: int = -1
    partition_count: int = 0
    put_batch_ms_max: float = 0.0
    put_batch_ms_sum: float = 0.0
    put_batches: int = 0
    offset_commit_completion: int = 0
    offset_commit_failures: int = 0
    total_record_failures: int = 0
    total_record_errors: int = 0
    total_records_skipped: int = 0
    total_retries: int = 0
    total_errors_logged: int = 0
    deadletterqueue_produce_requests: int = 0
    deadletterqueue_produce_failures: int = 0
    last_error_timestamp: int = 0
    cpu_seconds: float = 0.0
    """Of the task's own thread."""
