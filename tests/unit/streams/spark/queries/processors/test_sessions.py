"""Session windows: whatever the batches are, what was given out is what all rows together make."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streams.functions.aggregates import aggregator
from streams.model.plan import Aggregate
from streams.spark.queries.processors.sessions import Emitted, SessionRow, SessionWindows
from streams.spark.queries.processors.stored import dump, read

GAP = 10
AGGREGATORS = [
    aggregator(Aggregate(name="N", function="COUNT")),
    aggregator(Aggregate(name="S", function="SUM", arguments=("V",), argument_types=("BIGINT",))),
    aggregator(Aggregate(name="L", function="COLLECT_LIST", arguments=("V",), argument_types=("BIGINT",))),
]
BATCHES = st.lists(st.lists(st.integers(0, 200), max_size=8), max_size=8)
FOREVER = 1 << 40


class _Key:
    """The sessions of a key, batch by batch, as the processor runs them; rows have their number as value."""

    def __init__(self, *, grace_ms: int, is_final: bool = False) -> None:
        self._grace_ms, self._is_final = grace_ms, is_final
        self._stored: Any = (0, [])
        self.rows = self.late = 0
        self.stream_time = 0

    def batch(self, times: Sequence[int]) -> list[Emitted]:
        sequence, sessions = read(dump(self._stored))
        windows = SessionWindows(GAP, self._grace_ms, AGGREGATORS, self._is_final, sessions, sequence)
        for time in times:
            self.stream_time = max(self.stream_time, time)
            windows.add(SessionRow(time, self.stream_time, [(), (self.rows,), (self.rows,)]))
            self.rows += 1
        windows.close(self.stream_time)
        self._stored = (windows.sequence, windows.to_store())
        self.late += windows.late
        return windows.emitted()


def _table(emitted: Sequence[Emitted]) -> dict[tuple[int, int], list[object]]:
    """What a reader of the changes has in the end."""
    rows: dict[tuple[int, int], list[object]] = {}
    for one in emitted:
        if one.results is None:
            del rows[one.start, one.end]
        else:
            rows[one.start, one.end] = one.results
    return rows


def _sessions(times: Sequence[int]) -> dict[tuple[int, int], list[int]]:
    """The numbers of the rows of each session, by sorting."""
    found: list[list[int]] = []
    for number in sorted(range(len(times)), key=lambda number: times[number]):
        if found and times[number] - times[found[-1][-1]] <= GAP:
            found[-1].append(number)
        else:
            found.append([number])
    return {(times[one[0]], times[one[-1]]): one for one in found}


@given(BATCHES)
def test_changes_make_the_sessions_of_all_rows(batches: list[list[int]]) -> None:
    key = _Key(grace_ms=FOREVER)
    table = _table([one for times in batches for one in key.batch(times)])
    expected = _sessions([time for times in batches for time in times])
    found = {bounds: (count, total, sorted(rows)) for bounds, (count, total, rows) in _typed(table)}
    assert found == {bounds: (len(rows), sum(rows), sorted(rows)) for bounds, rows in expected.items()}


def _rows(results: list[Any]) -> list[int]:
    return list(results[2])


def _typed(table: dict[tuple[int, int], list[Any]]) -> list[tuple[tuple[int, int], list[Any]]]:
    return list(table.items())


@given(BATCHES, st.integers(0, 60))
def test_batches_do_not_matter(batches: list[list[int]], grace_ms: int) -> None:
    together, apart = _Key(grace_ms=grace_ms), _Key(grace_ms=grace_ms)
    times = [time for batch in batches for time in batch]
    one_by_one = [emitted for time in times for emitted in apart.batch([time])]
    in_batches = [emitted for batch in batches for emitted in together.batch(batch)]
    assert _table(in_batches) == _table(one_by_one)
    assert together.late == apart.late


@given(BATCHES, st.integers(0, 60))
def test_final_sessions_come_once_and_no_row_is_lost(batches: list[list[int]], grace_ms: int) -> None:
    key = _Key(grace_ms=grace_ms, is_final=True)
    emitted = [one for batch in batches for one in key.batch(batch)] + key.batch([FOREVER])
    rows = [number for results in _table(emitted).values() for number in _rows(results)]
    assert len(rows) == len(set(rows)) == key.rows - 1 - key.late
    changes = _Key(grace_ms=grace_ms)
    table = _table([one for batch in [*batches, [FOREVER]] for one in changes.batch(batch)])
    table.pop((FOREVER, FOREVER))
    assert {(one.start, one.end): one.results for one in emitted} == table


def test_a_late_row_may_join_a_session_that_is_open() -> None:
    key = _Key(grace_ms=0)
    key.batch([100, 110])
    # 99 alone would be closed at 110; the session that it belongs to is not.
    assert [(one.start, one.end) for one in key.batch([99])] == [(100, 110), (99, 110)]
    assert key.batch([80]) == []
    assert key.late == 1


def test_a_session_that_was_never_given_out_is_not_deleted() -> None:
    key = _Key(grace_ms=FOREVER)
    (only,) = key.batch([100, 120, 110])
    assert (only.start, only.end, only.results) == (100, 120, [3, 3, [0, 1, 2]])
    assert key.batch([]) == []
