"""Aggregates of numbers: counts, sums, averages, the smallest and the largest value."""

from collections.abc import Callable, Iterable
from decimal import Context, InvalidOperation
from decimal import Decimal as Number
from functools import partial
from typing import Any, Final

from typing_extensions import override

from streams.functions.states import NonNull, Values, sort_key
from streams.model.types import BIGINT, INTEGER, Decimal, SqlType, bounded

_BITS: Final = {INTEGER: 32, BIGINT: 64}
_EXACT: Final = Context(prec=100)


class Count(NonNull[int]):
    """The number of rows, or of values that are not NULL."""

    has_undo = True

    @override
    def start(self) -> int:
        return 0

    @override
    def include(self, state: int, values: Values, at: int) -> int:
        return state + 1

    @override
    def exclude(self, state: int, values: Values) -> int:
        return state - 1

    @override
    def merge(self, one: int, other: int) -> int:
        return one + other

    @override
    def result(self, state: int) -> int:
        return state


class Sum(NonNull[Any]):
    """The sum of values or of the items of arrays. Integers wrap around; what a decimal cannot hold is ignored."""

    has_undo = True

    def __init__(self, kind: SqlType, *, of_lists: bool = False) -> None:
        self._add = _addition(kind)
        self._zero = _zero(kind)
        self._of_lists = of_lists

    @override
    def start(self) -> Any:
        return self._zero

    @override
    def include(self, state: Any, values: Values, at: int) -> Any:
        for value in self._items(values[0]):
            state = self._add(state, value)
        return state

    @override
    def exclude(self, state: Any, values: Values) -> Any:
        for value in self._items(values[0]):
            state = self._add(state, value.copy_negate() if isinstance(value, Number) else -value)
        return state

    @override
    def merge(self, one: Any, other: Any) -> Any:
        return self._add(one, other)

    @override
    def result(self, state: Any) -> Any:
        return state

    def _items(self, value: Any) -> Iterable[Any]:
        return (item for item in value if item is not None) if self._of_lists else (value,)


def _zero(kind: SqlType) -> Any:
    if isinstance(kind, Decimal):
        return Number(0).scaleb(-bounded(kind.precision, kind.scale).scale)
    return 0 if kind in _BITS else 0.0


def _addition(kind: SqlType) -> Callable[[Any, Any], Any]:
    if isinstance(kind, Decimal):
        fitting = bounded(kind.precision, kind.scale)
        return partial(_decimal_sum, Context(prec=fitting.precision, traps=[InvalidOperation]), fitting.scale)
    return partial(_wrapped_sum, 1 << (_BITS[kind] - 1)) if kind in _BITS else _double_sum


def _decimal_sum(context: Context, scale: int, one: Number, other: Number) -> Number:
    try:
        # `quantize` refuses what has more digits than the context.
        return context.quantize(_EXACT.add(one, other), Number(1).scaleb(-scale))
    except InvalidOperation:
        return one


def _wrapped_sum(half: int, one: int, other: int) -> int:
    return (one + other + half) % (2 * half) - half


def _double_sum(one: float, other: float) -> float:
    return one + other


class Average(NonNull[list[float]]):
    """The average; 0 if there are no values."""

    has_undo = True

    @override
    def start(self) -> list[float]:
        return [0.0, 0]

    @override
    def include(self, state: list[float], values: Values, at: int) -> list[float]:
        return [state[0] + float(values[0]), state[1] + 1]  # type: ignore[arg-type]  # a number

    @override
    def exclude(self, state: list[float], values: Values) -> list[float]:
        if state[1] <= 1:
            return self.start()
        return [state[0] - float(values[0]), state[1] - 1]  # type: ignore[arg-type]  # a number

    @override
    def merge(self, one: list[float], other: list[float]) -> list[float]:
        return [one[0] + other[0], one[1] + other[1]]

    @override
    def result(self, state: list[float]) -> float:
        return state[0] / state[1] if state[1] else 0.0


class Extreme(NonNull[Any]):
    """The smallest or the largest value."""

    def __init__(self, choose: Callable[..., Any]) -> None:
        self._choose = choose

    @override
    def start(self) -> Any:
        return None

    @override
    def include(self, state: Any, values: Values, at: int) -> Any:
        return self.merge(state, values[0])

    @override
    def merge(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return self._choose(one, other, key=sort_key)

    @override
    def result(self, state: Any) -> Any:
        return state
