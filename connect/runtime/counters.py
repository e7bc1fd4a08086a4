"""The counters of a task; their names are those of Kafka Connect's metrics."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec


class TaskCounters(msgspec.Struct, kw_only=True):
    """Counts since the task started. Only the task's thread writes them; any thread may read them."""

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
    """The processor time of the task's thread."""

    def add(self, changes: Mapping[str, float]) -> None:
        """Add changes by name; KeyError for an unknown name."""
        whole = msgspec.structs.asdict(self)
        for name, change in changes.items():
            kind = type(whole[name])
            setattr(self, name, kind(_add(name, whole[name], change)))

    def since(self, before: "TaskCounters") -> dict[str, float]:
        """The changes since `before`."""
        then = msgspec.structs.asdict(before)
        now = msgspec.structs.asdict(self)
        return {
            name: now[name] if name in _GAUGES or name in _LARGEST else now[name] - then[name]
            for name in now
            if now[name] != then[name]
        }


_GAUGES: Final = frozenset({"source_record_active", "sink_record_lag_max", "partition_count"})
"""Counters whose last value replaces the earlier one."""
_LARGEST: Final = frozenset({"put_batch_ms_max", "last_error_timestamp"})


def merged_counters(counted: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sum of the changes of several pipelines."""
    together: dict[str, float] = {}
    for changes in counted:
        for name, change in changes.items():
            together[name] = _add(name, together[name], change) if name in together else change
    return together


def _add(name: str, so_far: float, change: float) -> float:
    if name in _GAUGES:
        return change
    return max(so_far, change) if name in _LARGEST else so_far + change
