"""The metrics of a worker for `/metrics`; the names are Kafka Connect's, with underscores."""

from collections.abc import Iterable, Mapping

from core_broker.service.metrics import Family

_TASK_COUNTERS = {
    "source_record_poll": "Records read by sources.",
    "source_record_write": "Records of sources written to Kafka.",
    "sink_record_read": "Records read for sinks.",
    "sink_record_send": "Records put into sinks.",
    "put_batches": "Batches put into sinks.",
    "offset_commit_completion": "Successful offset commits.",
    "offset_commit_failures": "Failed offset commits.",
    "total_record_failures": "Failed attempts to process a record.",
    "total_record_errors": "Records that failed for good.",
    "total_records_skipped": "Records skipped because of errors.",
    "total_retries": "Retries.",
    "total_errors_logged": "Logged errors.",
    "deadletterqueue_produce_requests": "Dead letters sent.",
    "deadletterqueue_produce_failures": "Dead letters that could not be written.",
    "cpu_seconds": "Processor time of the task's thread.",
}
_TASK_GAUGES = {
    "source_record_active": "Records of sources that are sent and not yet acknowledged.",
    "sink_record_lag_max": "The largest lag of a partition, in records; -1 when unknown.",
    "partition_count": "Partitions assigned to a sink's task.",
    "put_batch_ms_max": "The longest time that a sink took for a batch, in ms.",
    "last_error_timestamp": "The time of the last failure, in ms since 1970.",
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
