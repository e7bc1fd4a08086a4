"""Foreign-key joins: two tables change in any order and in any batches; the result is their join."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.spark.queries.processors.joined import ForeignKeyState, LeftChange, Stored
from streams.spark.queries.processors.stored import dump, read

KEYS = st.sampled_from("xyz")
LEFT = st.tuples(st.just("left"), st.integers(0, 3), st.one_of(st.none(), st.tuples(KEYS, st.integers(0, 99))))
RIGHT = st.tuples(st.just("right"), KEYS, st.one_of(st.none(), st.integers(0, 99)))
BATCHES = st.lists(st.lists(st.one_of(LEFT, RIGHT), max_size=6), max_size=6)


class _Rows:
    def __init__(self) -> None:
        self.stored: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> Stored | None:
        found = self.stored.get(key)
        return None if found is None else read(found)

    def items(self) -> Iterator[tuple[bytes, Stored]]:
        return ((key, read(value)) for key, value in self.stored.items())


class _Join:
    """All keys of the right table, and the table that the rows given out make."""

    def __init__(self, *, is_left_join: bool) -> None:
        self._is_left_join = is_left_join
        self._rows: dict[str, _Rows] = {}
        self._right: dict[str, Stored | None] = {}
        self._left: dict[int, tuple[str, int]] = {}
        self.result: dict[int, tuple[int, Any]] = {}
        self._time = 0

    def batch(self, records: list[Any]) -> None:
        work: dict[str, list[Any]] = {}
        before = dict(self._left)
        for side, key, value in records:
            self._time += 1
            if side == "right":
                work.setdefault(key, []).append((self._time, None if value is None else [value]))
            elif value is None:
                self._left.pop(key, None)
            else:
                self._left[key] = value
        # As the changes of a table come: one of each key.
        for key in {key for side, key, _ in records if side == "left"}:
            after = self._left.get(key)
            if key in before:
                sign = -2 if after is None else -1
                old = LeftChange(dump(key), sign, (self._time, [key, before[key][1]]))
                work.setdefault(before[key][0], []).append(old)
            if after is not None:
                work.setdefault(after[0], []).append(LeftChange(dump(key), 1, (self._time, [key, after[1]])))
        # The keys are processed apart, in any order.
        given_out = [self._process(key, changes) for key, changes in work.items()]
        deleted = {left for _, gone in given_out for left in gone}
        rows = {left: row for found, _ in given_out for left, row in found.items()}
        assert sum(len(found) for found, _ in given_out) == len(rows), "a row is given out by two keys"
        assert not deleted & set(rows), "a row is given out by one key, and deleted by another"
        for left in deleted:
            self.result.pop(left, None)
        self.result |= rows

    def _process(self, key: str, changes: list[Any]) -> tuple[dict[int, tuple[int, Any]], set[int]]:
        rows = self._rows.setdefault(key, _Rows())
        state = ForeignKeyState(self._is_left_join, rows, self._right.get(key))
        for change in changes:
            if isinstance(change, LeftChange):
                state.change_left(change)
            else:
                state.change_right(*change)
        joined = list(state.joined())
        for left_key, row in state.changed_rows():
            if row is None:
                rows.stored.pop(left_key, None)
            else:
                rows.stored[left_key] = dump(row)
        self._right[key] = state.right
        found = {
            one.left[1][0]: (one.left[1][1], one.right and one.right[1][0]) for one in joined if not one.is_deleted
        }
        return found, {one.left[1][0] for one in joined if one.is_deleted}

    def expected(self) -> dict[int, tuple[int, Any]]:
        found = {}
        for left, (key, value) in self._left.items():
            right = self._right.get(key)
            if right is not None or self._is_left_join:
                found[left] = (value, right and right[1][0])
        return found


@settings(max_examples=300)
@pytest.mark.parametrize("is_left_join", [False, True])
@given(batches=BATCHES)
def test_the_result_is_the_join_of_both_tables(is_left_join: bool, batches: list[list[Any]]) -> None:
    join = _Join(is_left_join=is_left_join)
    for records in batches:
        join.batch(records)
        assert join.result == join.expected()
