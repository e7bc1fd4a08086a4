"""The metrics of a worker for `/metrics`; the names are Kafka Connect's, with underscores."""

from collections.abc import Iterable, Mapping

from core_broker.service.metrics import Family

_TASK_COUNTERS = {
    "source_record_poll": "Records that sources have read.",
    "source_record_write": "Records of sources that were written.",
    "sink_record_read": "Records that were read for sinks.",
    "sink_record_send": "Records that were given to sinks.",
    "put_batches": "Batches that were given to sinks.",
    "offset_commit_completion": "Commits of offsets that worked.",
    "offset_commit_failures": "Commits of offsets that failed.",
    "total_record_failures": "Attempts at a record that failed.",
    "total_record_errors": "Records that were given up.",
    "total_records_skipped": "Records that were skipped because of errors.",
    "total_retries": "Attempts that were made again.",
    "total_errors_logged": "Errors that were logged.",
    "deadletterqueue_produce_requests": "Dead letters that were sent.",
    "deadletterqueue_produce_failures": "Dead letters that could not be written.",
    "cpu_seconds": "Processor time of the task's thread.",
}
_TASK_GAUGES = {
    "source_record_active": "Records of sources on their way.",
    "sink_record_lag_max": "Records behind the end, of the partition that is furthest behind; -1 when not known.",
    "partition_count": "Partitions that a sink's task reads.",
    "put_batch_ms_max": "Longest time that a sink took for a batch.",
    "last_error_timestamp": "When a record failed last, in ms since 1970.",
}


def families(tasks: Mapping[tuple[str, str], object], states: Mapping[tuple[str, str], int]) -> Iterable[Family]:
    """Counters by connector and task, and the numbers of connectors and tasks by state."""
    for name, meaning in _TASK_COUNTERS.items():
        yield _family(f"{name}_total", meaning, "counter", name, tasks)
    for name, meaning in _TASK_GAUGES.items():
        yield _family(name, meaning, "gauge", name, tasks)
    yield Family(
        name="caudal_connect_states",
        help="Connectors and tasks by state.",
        labels=("kind", "state"),
        samples=[(labels, count) for labels, count in states.items()],
    )


def _family(name: str, meaning: str, kind: str, attribute: str, counted: Mapping[tuple[str, str], object]) -> Family:
    return Family(
        name=f"caudal_connect_{name}",
        help=meaning,
        kind="counter" if kind == "counter" else "gauge",
        labels=("connector", "task"),
        samples=[(labels, float(getattr(counters, attribute))) for labels, counters in counted.items()],
    )
