"""What every aggregate in Python can do, and in which order values are."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from typing_extensions import override

State = TypeVar("State")
Values: TypeAlias = Sequence[object]
"""The arguments of an aggregate in one row."""


class Aggregator(ABC, Generic[State]):
    """An aggregate as functions of its state.

    A state is made of numbers, texts, bytes, times, lists and dicts, so that it can be stored. What `add`, `undo` and
    `merge` are given they may change; they return the state that is to be used from then on.
    """

    has_undo: bool = False
    """Whether rows can be taken back."""

    @abstractmethod
    def start(self) -> State:
        """The state without rows."""

    @abstractmethod
    def add(self, state: State, values: Values, at: int) -> State:
        """The state with one more row; `at` is larger for each row than for those before it."""

    def undo(self, state: State, values: Values) -> State:
        """The state without a row that was added before."""
        raise TypeError(f"{type(self).__name__} cannot take back {values} from {state}")

    @abstractmethod
    def merge(self, one: State, other: State) -> State:
        """The state with the rows of both; those of `one` are the earlier ones."""

    @abstractmethod
    def result(self, state: State) -> object:
        """The value of the aggregate."""


class NonNull(Aggregator[State]):
    """An aggregate that ignores rows in which an argument is NULL."""

    @abstractmethod
    def include(self, state: State, values: Values, at: int) -> State:
        """Add a row without NULL."""

    def exclude(self, state: State, values: Values) -> State:
        """Take back a row without NULL."""
        return super().undo(state, values)

    @override
    def add(self, state: State, values: Values, at: int) -> State:
        return state if None in values else self.include(state, values, at)

    @override
    def undo(self, state: State, values: Values) -> State:
        return state if None in values else self.exclude(state, values)


def sort_key(value: Any) -> tuple[int, Any]:
    """What values of one type are sorted by: NULL is the smallest, NaN the largest."""
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, value


def are_equal(one: object, other: object) -> bool:
    """Whether two values of one type are equal; NaN is equal to itself."""
    return one == other or (one != one and other != other)
