"""The right half of a foreign-key join: the rows of a table's key, and the left rows that refer to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

LeftKey: TypeAlias = bytes
Stored: TypeAlias = tuple[int, Sequence[Any]]
"""The time of a row, and its values."""


class LeftRows(Protocol):
    """The left rows of a key, as they were before the batch."""

    def get(self, key: LeftKey) -> Stored | None:
        """One of them."""

    def items(self) -> Iterator[tuple[LeftKey, Stored]]:
        """All of them."""


@dataclass(frozen=True, slots=True)
class LeftChange:
    """A left row that is added (sign 1), moves away or is replaced (-1), or is removed for good (-2)."""

    key: LeftKey
    sign: int
    row: Stored


@dataclass(frozen=True, slots=True)
class Joined:
    """A row that is given out; without `left`, it is deleted."""

    left: Stored
    right: Stored | None
    is_deleted: bool

    @property
    def time(self) -> int:
        """The later one of the times of both rows."""
        return max(self.left[0], self.right[0]) if self.right is not None else self.left[0]


@dataclass(slots=True)
class _Touched:
    before: Stored | None
    after: Stored | None
    last: LeftChange
    was_added: bool = False


@dataclass(slots=True)
class ForeignKeyState:
    """What happens to the rows of one key in a batch."""

    is_left_join: bool
    rows: LeftRows
    right_before: Stored | None
    right: Stored | None = field(init=False)
    right_is_changed: bool = False
    right_time: int = 0
    _touched: dict[LeftKey, _Touched] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.right = self.right_before

    def change_right(self, time: int, values: Sequence[Any] | None) -> None:
        """A record of the right table; without values it deletes the row."""
        self.right = None if values is None else (time, values)
        self.right_is_changed, self.right_time = True, time

    def change_left(self, change: LeftChange) -> None:
        """A change of a left row."""
        known = self._touched.get(change.key)
        if known is None:
            before = self.rows.get(change.key)
            known = self._touched[change.key] = _Touched(before, before, change)
        known.after = change.row if change.sign > 0 else None
        known.last = change
        known.was_added |= change.sign > 0

    def changed_rows(self) -> Iterator[tuple[LeftKey, Stored | None]]:
        """What to store of the left rows; None for those that are gone."""
        for key, one in self._touched.items():
            if one.before is not None or one.after is not None:
                yield key, one.after

    def joined(self) -> Iterator[Joined]:
        """The rows that are given out."""
        for one in self._touched.values():
            yield from self._of_touched(one)
        if self.right_is_changed and self.right != self.right_before:
            for key, left in self.rows.items():
                if key not in self._touched:
                    yield from self._given_out(left, was_there=self._shows(self.right_before))

    def _of_touched(self, one: _Touched) -> Iterator[Joined]:
        # Within this batch it may have come from another key, under which it was given out.
        was_there = one.was_added or (one.before is not None and self._shows(self.right_before))
        if one.after is not None:
            yield from self._given_out(one.after, was_there=was_there)
        elif one.last.sign < _MOVED and was_there:
            yield Joined(one.last.row, self.right, is_deleted=True)

    def _given_out(self, left: Stored, *, was_there: bool) -> Iterator[Joined]:
        if self._shows(self.right):
            yield Joined(left, self.right, is_deleted=False)
        elif was_there:
            yield Joined((max(left[0], self.right_time), left[1]), None, is_deleted=True)

    def _shows(self, right: Stored | None) -> bool:
        return self.is_left_join or right is not None


_MOVED = -1
