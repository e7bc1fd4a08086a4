"""How far a query is, as the service shows it."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from streams.spark.commits.manifest import by_topic
from streams.spark.queries.batches import Tallies

_NO_WATERMARK: Final = "1970-01-01T00:00:00.000Z"


def describe(state: str, tallies: Tallies, last: Mapping[str, Any], *, last_error: str | None) -> dict[str, Any]:
    """A query's progress: what it has done itself, and Spark's report on its last batch."""
    operators = last.get("stateOperators") or ()
    return {
        "state": state,
        "batch": tallies.batch,
        "input_rows": int(last.get("numInputRows") or 0),
        "rows_per_second": float(last.get("processedRowsPerSecond") or 0.0),
        "batch_seconds": float((last.get("durationMs") or {}).get("triggerExecution") or 0) / 1000,
        "durations_ms": {name: int(duration) for name, duration in (last.get("durationMs") or {}).items()},
        "state_rows": sum(int(operator["numRowsTotal"]) for operator in operators),
        "state_bytes": sum(int(operator["memoryUsedBytes"]) for operator in operators),
        "watermark_ms": _watermark_ms(last),
        "offsets": by_topic(tallies.offsets),
        "dead_letters": {"undecodable": tallies.undecodable, "late": tallies.late},
        "skipped": tallies.skipped,
        "records_out": tallies.records_out,
        "input_total": tallies.input_rows,
        "last_error": last_error,
    }


def _watermark_ms(last: Mapping[str, Any]) -> int | None:
    text = (last.get("eventTime") or {}).get("watermark")
    if text is None or text == _NO_WATERMARK:
        return None
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)
