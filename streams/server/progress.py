"""How persistent queries are doing, over all of their plans: for lists, descriptions and metrics."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from streams.model.plan import Query
from streams.server.runner import Run
from streams.server.topics import Topics

JSON: TypeAlias = Any
Status: TypeAlias = Literal["RUNNING", "ERROR", "PAUSED", "UNRESPONSIVE"]


class QueryProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress of a query."""

    status: Status
    error: str | None = None
    restarts: int = 0
    batches: int = 0
    input_rows: int = 0
    output_rows: int = 0
    rows_per_second: float = 0.0
    batch_seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    watermark_ms: int | None = None
    undecodable: int = 0
    """Dead letters, or records that were skipped: their key or value could not be read."""
    late: int = 0
    skipped: int = 0
    lag: int | None = None
    """How many records it has still to read; None if that is not known."""


def status_of(query: Query, run: Run | None) -> Status:
    """The word for its state. A server that does not run queries takes for granted that the other one does."""
    if query.is_paused:
        return "PAUSED"
    return "ERROR" if run is not None and run.state == "failed" else "RUNNING"


def progress_of(
    query: Query, run: Run | None, reported: Mapping[str, JSON], *, lag: int | None = None
) -> QueryProgress:
    """The progress of a query, from what the engine has reported of its plans."""
    parts = [reported[plan.name] for plan in query.plans if plan.name in reported]
    watermarks = [part["watermark_ms"] for part in parts if part.get("watermark_ms") is not None]
    letters = [part.get("dead_letters") or {} for part in parts]
    last = next((part.get("last_error") for part in parts if part.get("last_error")), None)
    return QueryProgress(
        status=status_of(query, run),
        error=(None if run is None else run.error) or last,
        restarts=0 if run is None else run.failures,
        batches=max((part.get("batch", -1) + 1 for part in parts), default=0),
        input_rows=_sum(parts, "input_rows"),
        output_rows=0 if not parts else parts[-1].get("records_out") or 0,
        rows_per_second=float(parts[0].get("rows_per_second") or 0) if parts else 0.0,
        batch_seconds=max((part.get("batch_seconds") or 0.0 for part in parts), default=0.0),
        state_rows=_sum(parts, "state_rows"),
        state_bytes=_sum(parts, "state_bytes"),
        watermark_ms=min(watermarks) if watermarks else None,
        undecodable=sum(one.get("undecodable") or 0 for one in letters),
        late=sum(one.get("late") or 0 for one in letters),
        skipped=_sum(parts, "skipped"),
        lag=lag,
    )


def _sum(parts: list[JSON], key: str) -> int:
    return sum(part.get(key) or 0 for part in parts)


Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
Ends: TypeAlias = Mapping[str, Mapping[int, tuple[int, int]]]


def groups_of(query: Query, topics: Topics) -> tuple[list[tuple[str, Offsets]], Ends]:
    """How far the consumer groups of a query have read, and where their topics begin and end."""
    names = sorted({plan.group for plan in query.plans if plan.group is not None})
    read = {one.source.topic for plan in query.plans for one in plan.inputs}
    committed: list[tuple[str, Offsets]] = [(name, topics.committed(name)) for name in names]
    return committed, topics.ends(read)


def lag_of(committed: list[tuple[str, Offsets]], ends: Ends) -> int | None:
    """How many records groups have still to read; None if they have not committed anything.

    Where several parts of a query read the same records, they count once.
    """
    known: dict[tuple[str, int], int] = {}
    for _, offsets in committed:
        for topic, partitions in ends.items():
            for number, (start, end) in partitions.items() if topic in offsets else ():
                left = max(end - max(offsets[topic].get(number, start), start), 0)
                known[topic, number] = max(left, known.get((topic, number), 0))
    return sum(known.values()) if known else None


ProgressOf: TypeAlias = Callable[[Query], QueryProgress]
