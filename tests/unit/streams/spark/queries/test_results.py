"""The queue of rows for a client."""

import threading
import time

import msgspec
import pyarrow as pa
import pytest

from streams.spark.queries import results as module
from streams.spark.queries.results import Cancelled, Results
from streams.spark.queries.staging import ROWS


def _batch(*rows: int, deleted: bool = False) -> pa.RecordBatch:
    data = pa.array([msgspec.json.encode([row]) for row in rows], pa.binary())
    return pa.RecordBatch.from_arrays([data, pa.array([deleted] * len(rows), pa.bool_())], schema=ROWS)


def _take(results: Results, limit: int = 100) -> tuple[list[object], bool]:
    found = msgspec.json.decode(msgspec.json.encode(results.take(wait_ms=0, limit=limit)))
    return [row[0] for row in found["rows"]], found["done"]


def test_rows_are_taken_in_their_order() -> None:
    results = Results(None)
    assert results.add_batch(0, [_batch(1, 2), _batch(3)]) == 3
    assert _take(results, 2) == ([1, 2], False)
    assert _take(results) == ([3], False)


def test_a_repeated_batch_adds_nothing() -> None:
    results = Results(None)
    results.add_batch(0, [_batch(1)])
    assert results.add_batch(0, [_batch(1)]) == 0
    assert _take(results) == ([1], False)


def test_after_the_limit_there_is_nothing_more() -> None:
    results = Results(2)
    assert results.add_batch(0, [_batch(1, 2, 3)]) == 2
    assert results.is_complete
    assert _take(results, 1) == ([1], False)
    assert _take(results) == ([2], True)


def test_deleted_rows_are_tombstones() -> None:
    results = Results(None)
    results.add_batch(0, [_batch(1, deleted=True)])
    assert results.take(wait_ms=0, limit=1)["tombstones"] == [True]


def test_taking_waits_for_the_first_row() -> None:
    results = Results(None)
    adding = threading.Timer(0.05, lambda: results.add_batch(0, [_batch(1)]))
    adding.start()
    assert len(results.take(wait_ms=10_000, limit=1)["rows"]) == 1
    adding.join()


def test_an_end_is_told_after_the_last_row() -> None:
    results = Results(None)
    results.add_batch(0, [_batch(1)])
    results.end("broken")
    assert results.take(wait_ms=0, limit=0)["error"] is None
    assert _take(results) == ([1], True)
    assert results.take(wait_ms=0, limit=1)["error"] == "broken"


def test_a_batch_waits_while_the_queue_is_full_until_the_query_ends() -> None:
    results = Results(None)
    full = module._ROWS_MAX
    outcome: list[BaseException] = []

    def add() -> None:
        try:
            results.add_batch(0, [_batch(*range(full + 1))])
        except Cancelled as error:
            outcome.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    time.sleep(0.2)
    assert thread.is_alive()
    results.end()
    thread.join(10)
    assert [type(error) for error in outcome] == [Cancelled]


@pytest.mark.parametrize("limit", [0])
def test_a_limit_of_nothing_is_complete_at_once(limit: int) -> None:
    assert _take(Results(limit)) == ([], True)
