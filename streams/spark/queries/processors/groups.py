"""A group of rows that are added and taken back, as rows of a table are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streams.functions.states import Aggregator


@dataclass(slots=True)
class Group:
    """A group: how many rows it has, how many have ever been added, its time, and the states of its aggregates."""

    aggregators: Sequence[Aggregator[Any]]
    rows: int
    sequence: int
    time: int
    states: list[Any]

    @classmethod
    def new(cls, aggregators: Sequence[Aggregator[Any]]) -> "Group":
        """A group without rows."""
        return cls(aggregators, 0, 0, 0, [one.start() for one in aggregators])

    def change(self, sign: int, time: int, values: Sequence[Sequence[object]]) -> None:
        """Add a row, or take one back if the sign is negative. What was never added cannot be taken back."""
        arguments = zip(self.aggregators, self.states, values, strict=True)
        if sign > 0:
            self.sequence += 1
            self.rows += 1
            self.states = [one.add(state, given, self.sequence) for one, state, given in arguments]
        elif self.rows:
            self.rows -= 1
            self.states = [one.undo(state, given) for one, state, given in arguments]
        self.time = max(self.time, time)

    def results(self) -> list[object] | None:
        """The aggregates; None if no row is left."""
        if not self.rows:
            return None
        return [one.result(state) for one, state in zip(self.aggregators, self.states, strict=True)]
