"""How queries are doing."""

from streams.model.plan import Query, QueryPlan
from streams.server.progress import lag_of, progress_of, status_of
from streams.server.runner import Run

_QUERY = Query(
    id="Q",
    statement="",
    reads=("A",),
    writes="B",
    plans=(QueryPlan(name="Q", inputs=(), steps=()), QueryPlan(name="Q-2", inputs=(), steps=())),
)


def test_a_query_counts_what_its_parts_have_done() -> None:
    told = {
        "Q": {"batch": 3, "input_rows": 10, "state_rows": 4, "watermark_ms": 50, "dead_letters": {"late": 2}},
        "Q-2": {"batch": 2, "input_rows": 9, "state_rows": 1, "watermark_ms": 40, "records_out": 8},
        "other": {"input_rows": 1000},
    }
    found = progress_of(_QUERY, Run(_QUERY, state="running"), told, lag=7)
    assert (found.status, found.batches, found.input_rows, found.output_rows) == ("RUNNING", 4, 19, 8)
    assert (found.state_rows, found.watermark_ms, found.late, found.lag) == (5, 40, 2, 7)


def test_a_query_that_waits_after_a_failure_is_in_error() -> None:
    run = Run(_QUERY, state="failed", error="no space left", failures=2)
    found = progress_of(_QUERY, run, {})
    assert (found.status, found.error, found.restarts) == ("ERROR", "no space left", 2)
    assert status_of(_QUERY, None) == "RUNNING"


def test_the_lag_is_what_is_between_commits_and_ends() -> None:
    ends = {"a": {0: (5, 20), 1: (0, 0)}, "never": {0: (0, 100)}}
    assert lag_of([("g", {"a": {0: 15}})], ends) == 5
    assert lag_of([("g", {"a": {0: 2}})], ends) == 15
    assert lag_of([("g", {})], ends) is None
    assert lag_of([("g", {"a": {0: 15}}), ("g-2", {"a": {0: 12}})], ends) == 8
