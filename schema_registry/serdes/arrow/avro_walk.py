"""Where the fields of many Avro records are, found for all records at once, one field after the other.

This tells which records end too soon or make no sense without reading any of them by itself, and where bytes are, which
the fast way of reading cannot read. Lists and maps are gone through item by item, so long ones are not worth it.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes.arrow.binary import Content, Cursor, Rows, binary_array, content_of
from schema_registry.serdes.avro_plan import ChoicePlan, EntriesPlan, ListPlan, MapPlan, Plan, Scalar, StructPlan

_MOST_ITEMS: Final = 64
_MOST_STEPS: Final = 2000
"""Items that are gone through in all, each of all records at once."""
_INT32: Final = 1 << 31
_WIDTHS: Final = {"float": 4, "double": 8}
_TEXT: Final = Scalar(Primitive("string"))


class TooLong(Exception):
    """A list or map has too many items to go through."""


class Walk:
    """Goes through records of one plan; `slots` numbers the scalars of bytes whose positions are wanted, by `id`."""

    def __init__(self, bodies: pa.Array, slots: Mapping[int, int] | None = None) -> None:
        self._slots = slots or {}
        self._cursor = cursor = Cursor(bodies)
        self._data, self._starts, self._ends, self._at = cursor.data, cursor.starts, cursor.ends, cursor.at
        self.is_bad = cursor.is_odd
        """Which records are not what they should be."""
        self._spans: dict[int, tuple[Rows, Rows, Rows]] = {}
        """By slot: where the length before the bytes is, where these begin, and where they end."""
        self._steps = 0

    def through(self, root: Plan) -> "Walk":
        """Go through all records; raises TooLong."""
        self._walk(root, np.arange(len(self._starts), dtype=np.int64))
        return self

    def without_contents(self) -> tuple[pa.Array, dict[int, Content]]:
        """Records that are not bad with empty bytes in all slots, and what was there."""
        good = ~self.is_bad
        data = self._data.copy()
        steps = np.zeros(len(data) + 1, dtype=np.int8)
        lengths = (self._ends - self._starts)[good]
        steps[self._starts[self.is_bad & (self._ends > self._starts)]] += 1
        steps[self._ends[self.is_bad & (self._ends > self._starts)]] -= 1
        contents = {}
        for slot in self._slots.values():
            before, begin, end = self._spans.get(slot) or _nowhere(len(good))
            contents[slot] = content_of(self._data, begin[good], end[good])
            is_there = good & (begin > before)
            data[before[is_there]] = 0
            steps[before[is_there] + 1] += 1
            steps[end[is_there]] -= 1
            lengths -= np.where(is_there, end - before - 1, 0)[good]
        is_kept = np.cumsum(steps[:-1], dtype=np.int8) == 0
        first, last = (self._starts[0], self._ends[-1]) if len(good) else (0, 0)
        kept = data[first:last][is_kept[first:last]]
        return binary_array(Content(kept, lengths), None), contents

    def _walk(self, plan: Plan, rows: Rows) -> None:
        if not len(rows):
            return
        match plan:
            case StructPlan():
                for field in plan.fields:
                    self._walk(field.plan, rows)
            case ChoicePlan():
                self._choice(plan, rows)
            case ListPlan():
                self._items(plan.items, rows, is_map=False)
            case MapPlan():
                self._items(plan.values, rows, is_map=True)
            case EntriesPlan():
                self._items(plan.entry, rows, is_map=False)
            case Scalar():
                self._scalar(plan, rows)

    def _scalar(self, plan: Scalar, rows: Rows) -> None:
        match plan.type:
            case Fixed():
                self._skip(rows, plan.type.size)
            case Enum():
                self._number_within(rows, 0, len(plan.type.symbols) - 1)
            case Primitive("int"):
                self._number_within(rows, -_INT32, _INT32 - 1)
            case Primitive("long"):
                self._number(rows)
            case Primitive("boolean"):
                self.is_bad[rows[self._data[self._at[rows]] > 1]] = True
                self._skip(rows, 1)
            case Primitive("string" | "bytes"):
                self._text(plan, rows)
            case Primitive(kind):
                self._skip(rows, _WIDTHS[kind])

    def _text(self, plan: Scalar, rows: Rows) -> None:
        slot = self._slots.get(id(plan))
        before = self._at[rows] if slot is not None else None
        lengths = self._number(rows)
        begin = self._at[rows] if slot is not None else None
        self._skip(rows, lengths)
        if slot is not None and before is not None and begin is not None:
            count = len(self._starts)
            spans = self._spans.setdefault(slot, _nowhere(count))
            for part, found in zip(spans, (before, begin, self._at[rows]), strict=True):
                part[rows] = found

    def _choice(self, plan: ChoicePlan, rows: Rows) -> None:
        chosen = self._number(rows)
        is_wrong = (chosen < 0) | (chosen >= plan.count)
        if is_wrong.any():
            self.is_bad[rows[is_wrong]] = True
        for branch in plan.branches:
            self._walk(branch.plan, rows[chosen == branch.index])

    def _items(self, item: Plan, rows: Rows, *, is_map: bool) -> None:
        while len(rows):
            counts = self._number(rows)
            with_size = rows[counts < 0]
            if len(with_size):
                self._number(with_size)
            counts = np.abs(counts)
            is_open = (counts != 0) & ~self.is_bad[rows]
            rows, counts = rows[is_open], counts[is_open]
            most = int(counts.max()) if len(counts) else 0
            self._steps += 1 + most
            if most > _MOST_ITEMS or self._steps > _MOST_STEPS:
                raise TooLong
            for number in range(most):
                some = rows[counts > number]
                if is_map:
                    self._walk(_TEXT, some)
                self._walk(item, some)
            rows = rows[~self.is_bad[rows]]

    def _number_within(self, rows: Rows, least: int, most: int) -> None:
        found = self._number(rows)
        is_wrong = (found < least) | (found > most)
        if is_wrong.any():
            self.is_bad[rows[is_wrong]] = True

    def _number(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The number that comes next, and go behind it."""
        raw, at = self._cursor.varints(rows, self._at[rows])
        self._cursor.go_to(rows, at)
        return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)

    def _skip(self, rows: Rows, count: "int | npt.NDArray[np.int64]") -> None:
        at = self._at[rows]
        # A length may be any number of 64 bits; what lies beyond any record is bad all the same.
        self._cursor.go_to(rows, at + np.clip(count, -1, len(self._data)), least=at)


def _nowhere(count: int) -> tuple[Rows, Rows, Rows]:
    return np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
