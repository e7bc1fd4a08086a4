"""Variance and correlation, updated row by row without losing digits (Welford's method, and Chan's for sums of two)."""

import math
from collections.abc import Sequence
from typing import TypeAlias

from typing_extensions import override

from streams.functions.states import NonNull, Values

Moments: TypeAlias = list[float]
"""How many rows; the means of x and y; the sums of squares of the deviations of x, of y, and of their products."""


class Correlation(NonNull[Moments]):
    """Pearson's coefficient of two columns; NaN where it is not defined."""

    has_undo = True

    @override
    def start(self) -> Moments:
        return [0, 0.0, 0.0, 0.0, 0.0, 0.0]

    @override
    def include(self, state: Moments, values: Values, at: int) -> Moments:
        x, y = _pair(values)
        count, mean_x, mean_y, squares_x, squares_y, products = state
        count += 1
        moved_x, moved_y = x - mean_x, y - mean_y
        mean_x += moved_x / count
        mean_y += moved_y / count
        squares_x += moved_x * (x - mean_x)
        squares_y += moved_y * (y - mean_y)
        return [count, mean_x, mean_y, squares_x, squares_y, products + moved_x * (y - mean_y)]

    @override
    def exclude(self, state: Moments, values: Values) -> Moments:
        x, y = _pair(values)
        count, mean_x, mean_y, squares_x, squares_y, products = state
        if count <= 1:
            return self.start()
        moved_x, moved_y = x - mean_x, y - mean_y
        mean_x -= moved_x / (count - 1)
        mean_y -= moved_y / (count - 1)
        squares_x = max(squares_x - moved_x * (x - mean_x), 0.0)
        squares_y = max(squares_y - moved_y * (y - mean_y), 0.0)
        return [count - 1, mean_x, mean_y, squares_x, squares_y, products - (x - mean_x) * moved_y]

    @override
    def merge(self, one: Moments, other: Moments) -> Moments:
        if not one[0] or not other[0]:
            return one if one[0] else other
        count = one[0] + other[0]
        moved_x, moved_y = other[1] - one[1], other[2] - one[2]
        weight = one[0] * other[0] / count
        return [
            count,
            one[1] + moved_x * other[0] / count,
            one[2] + moved_y * other[0] / count,
            one[3] + other[3] + moved_x * moved_x * weight,
            one[4] + other[4] + moved_y * moved_y * weight,
            one[5] + other[5] + moved_x * moved_y * weight,
        ]

    @override
    def result(self, state: Moments) -> float:
        squares = math.sqrt(state[3]) * math.sqrt(state[4])
        return state[5] / squares if squares else math.nan


class Variance(Correlation):
    """The variance of a sample, or the root of it; 0 for fewer than two rows."""

    def __init__(self, *, is_root: bool) -> None:
        self._is_root = is_root

    @override
    def result(self, state: Moments) -> float:
        if state[0] < 2:
            return 0.0
        variance = state[3] / (state[0] - 1)
        return math.sqrt(variance) if self._is_root else variance


def _pair(values: Sequence[object]) -> tuple[float, float]:
    """The first and the last argument, which are the same one for a variance."""
    return float(values[0]), float(values[-1])  # type: ignore[arg-type]  # both are numbers
