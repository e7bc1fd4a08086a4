"""Aggregates that keep values: lists, sets, the largest, the first and the last ones."""

from typing import Any, Final, TypeAlias

from typing_extensions import override

from streams.functions.states import Aggregator, NonNull, Values, are_equal, sort_key

_TEXTS_MAX: Final = 1000
Numbered: TypeAlias = list[tuple[int, object]]
"""Values with the numbers of their rows, in the order of these."""


class CollectList(Aggregator[list[object]]):
    """All values, NULL too."""

    has_undo = True

    @override
    def start(self) -> list[object]:
        return []

    @override
    def add(self, state: list[object], values: Values, at: int) -> list[object]:
        state.append(values[0])
        return state

    @override
    def undo(self, state: list[object], values: Values) -> list[object]:
        for position in range(len(state) - 1, -1, -1):
            if are_equal(state[position], values[0]):
                del state[position]
                break
        return state

    @override
    def merge(self, one: list[object], other: list[object]) -> list[object]:
        return one + other

    @override
    def result(self, state: list[object]) -> list[object]:
        return list(state)


class CollectSet(Aggregator[list[object]]):
    """The different values, NULL too, in the order in which they came."""

    @override
    def start(self) -> list[object]:
        return []

    @override
    def add(self, state: list[object], values: Values, at: int) -> list[object]:
        if not any(are_equal(one, values[0]) for one in state):
            state.append(values[0])
        return state

    @override
    def merge(self, one: list[object], other: list[object]) -> list[object]:
        for value in other:
            one = self.add(one, (value,), 0)
        return one

    @override
    def result(self, state: list[object]) -> list[object]:
        return list(state)


class Histogram(NonNull[dict[str, int]]):
    """How often each text occurs; beyond a thousand texts, others are ignored."""

    has_undo = True

    @override
    def start(self) -> dict[str, int]:
        return {}

    @override
    def include(self, state: dict[str, int], values: Values, at: int) -> dict[str, int]:
        return self._counted(state, str(values[0]), 1)

    @override
    def exclude(self, state: dict[str, int], values: Values) -> dict[str, int]:
        text = str(values[0])
        if state.get(text, 0) > 1:
            state[text] -= 1
        else:
            state.pop(text, None)
        return state

    @override
    def merge(self, one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        for text, count in other.items():
            one = self._counted(one, text, count)
        return one

    @override
    def result(self, state: dict[str, int]) -> dict[str, int]:
        return dict(state)

    @staticmethod
    def _counted(state: dict[str, int], text: str, count: int) -> dict[str, int]:
        if text in state or len(state) < _TEXTS_MAX:
            state[text] = state.get(text, 0) + count
        return state


class Attribute(Aggregator[list[list[Any]]]):
    """The value if it is the same in all rows; the state counts the rows of each value."""

    has_undo = True

    @override
    def start(self) -> list[list[Any]]:
        return []

    @override
    def add(self, state: list[list[Any]], values: Values, at: int) -> list[list[Any]]:
        return self._counted(state, values[0], 1)

    @override
    def undo(self, state: list[list[Any]], values: Values) -> list[list[Any]]:
        return [pair for pair in self._counted(state, values[0], -1) if pair[1] > 0]

    @override
    def merge(self, one: list[list[Any]], other: list[list[Any]]) -> list[list[Any]]:
        for value, count in other:
            one = self._counted(one, value, count)
        return one

    @override
    def result(self, state: list[list[Any]]) -> object:
        return state[0][0] if len(state) == 1 else None

    @staticmethod
    def _counted(state: list[list[Any]], value: object, count: int) -> list[list[Any]]:
        for pair in state:
            if are_equal(pair[0], value):
                pair[1] += count
                return state
        state.append([value, count])
        return state


class Top(Aggregator[list[list[object]]]):
    """The rows with the largest first values, with their other columns."""

    def __init__(self, count: int, columns: int, *, is_distinct: bool = False) -> None:
        self._count = count
        self._has_others = columns > 1
        self._is_distinct = is_distinct

    @override
    def start(self) -> list[list[object]]:
        return []

    @override
    def add(self, state: list[list[object]], values: Values, at: int) -> list[list[object]]:
        if values[0] is None:
            return state
        return self.merge(state, [list(values)])

    @override
    def merge(self, one: list[list[object]], other: list[list[object]]) -> list[list[object]]:
        if self._is_distinct:
            other = [row for row in other if not any(are_equal(row[0], has[0]) for has in one)]
        rows = sorted(one + other, key=lambda row: [sort_key(value) for value in row], reverse=True)
        return rows[: self._count]

    @override
    def result(self, state: list[list[object]]) -> list[object]:
        if not self._has_others:
            return [row[0] for row in state]
        names = ["sort_col", *(f"col{number}" for number in range(len(state[0]) - 1 if state else 0))]
        return [dict(zip(names, row, strict=True)) for row in state]


class ByOffset(Aggregator[Numbered]):
    """The first or the last values in the order of the records."""

    def __init__(self, *, is_latest: bool, count: int | None, ignores_nulls: bool) -> None:
        self._is_latest = is_latest
        self._count = count
        self._ignores_nulls = ignores_nulls

    @override
    def start(self) -> Numbered:
        return []

    @override
    def add(self, state: Numbered, values: Values, at: int) -> Numbered:
        if values[0] is None and self._ignores_nulls:
            return state
        state.append((at, values[0]))
        return self._cut(state)

    @override
    def merge(self, one: Numbered, other: Numbered) -> Numbered:
        return self._cut(sorted([*one, *other], key=lambda pair: pair[0]))

    @override
    def result(self, state: Numbered) -> object:
        if self._count is not None:
            return [value for _, value in state]
        return state[0][1] if state else None

    def _cut(self, rows: Numbered) -> Numbered:
        count = self._count or 1
        return rows[-count:] if self._is_latest else rows[:count]
