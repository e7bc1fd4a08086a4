"""Metrics of queries and of the copies of tables."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from core_broker.service.metrics import Family

STATES: Final = ("RUNNING", "ERROR", "PAUSED", "UNRESPONSIVE")


class Copy(msgspec.Struct, frozen=True):
    """The copy of a table on this server."""

    table: str
    rows: int
    lag_records: int


def query_families(progress: Mapping[str, Mapping[str, Any]], *, now_ms: int) -> Iterable[Family]:
    """Metrics of persistent queries; `progress` has for each query the fields of the server's QueryProgress."""
    for name, help_text, kind, key in _SINGLE:
        samples: list[tuple[tuple[str, ...], float]] = [
            ((query,), float(one[key])) for query, one in progress.items() if one.get(key) is not None
        ]
        yield Family(name=f"streams_query_{name}", help=help_text, kind=kind, labels=("query",), samples=samples)
    yield Family(
        name="streams_query_state",
        help="1 for the state that a query is in.",
        labels=("query", "state"),
        samples=[
            ((query, state), float(one.get("status") == state)) for query, one in progress.items() for state in STATES
        ],
    )
    yield Family(
        name="streams_query_watermark_delay_seconds",
        help="How far the watermark is behind the clock.",
        labels=("query",),
        samples=[
            ((query,), max(0.0, (now_ms - one["watermark_ms"]) / 1000))
            for query, one in progress.items()
            if one.get("watermark_ms") is not None
        ],
    )
    yield Family(
        name="streams_query_dlq_total",
        help="Records that could not be read, or came too late: they are dead letters, or skipped if there are none.",
        kind="counter",
        labels=("query", "reason"),
        samples=[
            ((query, reason), float(one.get(reason) or 0))
            for query, one in progress.items()
            for reason in ("undecodable", "late")
        ],
    )


def copy_families(copies: Iterable[Copy]) -> Iterable[Family]:
    """Metrics of the copies of tables, which pull queries read."""
    found = list(copies)
    yield Family(
        name="streams_table_rows",
        help="Rows in the copy of a table.",
        labels=("table",),
        samples=[((copy.table,), copy.rows) for copy in found],
    )
    yield Family(
        name="streams_table_lag_records",
        help="Records of the table's topic that its copy lacks.",
        labels=("table",),
        samples=[((copy.table,), copy.lag_records) for copy in found],
    )


def client_families(open_queries: Mapping[str, int]) -> Iterable[Family]:
    """Metrics of the queries of clients; `open_queries` counts them by kind."""
    yield Family(
        name="streams_client_queries",
        help="Queries of clients that are open.",
        labels=("kind",),
        samples=[((kind,), count) for kind, count in open_queries.items()],
    )


_SINGLE: Final[tuple[tuple[str, str, Literal["counter", "gauge"], str], ...]] = (
    ("batch_duration_seconds", "Duration of the last batch.", "gauge", "batch_seconds"),
    ("batches_total", "Batches of the query.", "counter", "batches"),
    ("input_rows_total", "Records read.", "counter", "input_rows"),
    ("output_rows_total", "Records written.", "counter", "output_rows"),
    ("restarts_total", "How often the query was started again after a failure.", "counter", "restarts"),
    ("skipped_total", "Records left out, such as those without a value.", "counter", "skipped"),
    ("rows_per_second", "Records read per second, lately.", "gauge", "rows_per_second"),
    ("state_rows", "Rows in the state of a query.", "gauge", "state_rows"),
    ("state_bytes", "Memory of the state of a query.", "gauge", "state_bytes"),
    ("lag_records", "Records that the query has still to read.", "gauge", "lag"),
)
