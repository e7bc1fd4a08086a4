"""Where the fields of many Avro records are, found for all records at once, one field after the other.

This finds the records that end too soon or make no sense without decoding any of them by itself, and the places of
bytes, which pyruhvro cannot decode. Lists and maps are followed item by item, so long ones are not worth it.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.arrow.binary import Content, Cursor, Rows, binary_array, content_of

_ITEMS_MAX: Final = 64
_STEPS_MAX: Final = 2000
"""Items that are followed in all, each step in all records at once."""
_INT32: Final = 1 << 31
_WIDTHS: Final = {"float": 4, "double": 8}
_TEXT: Final = plans.Scalar(Primitive("string"))


class TooLong(Exception):
    """A list or map has too many items to follow."""


class Walk:
    """Goes through records of one plan; `slots` numbers the scalars of bytes whose places are wanted, by `id`."""

    def __init__(self, bodies: pa.Array, slots: Mapping[int, int]) -> None:
        self._slots = slots
        self._cursor = cursor = Cursor(bodies)
        self._data, self._starts, self._ends, self._at = cursor.data, cursor.starts, cursor.ends, cursor.at
        self.is_bad = cursor.is_odd
        """Which records end too soon or make no sense."""
        self._spans = {slot: np.zeros((3, len(self._starts)), np.int64) for slot in slots.values()}
        """By slot: where the length before the bytes is, where these begin, and where they end."""
        self._steps = 0

    def through(self, root: plans.Plan) -> "Walk":
        """Go through all records; raises TooLong."""
        self._walk(root, np.arange(len(self._starts), dtype=np.int64))
        return self

    def without_contents(self) -> tuple[pa.Array, dict[int, Content]]:
        """The records that are not bad, with empty bytes in all slots, and the contents of these."""
        good = ~self.is_bad
        data = self._data.copy()
        # Each byte to leave out lies between a step up and a step down.
        steps = np.zeros(len(data) + 1, dtype=np.int8)
        lengths = (self._ends - self._starts)[good]
        steps[self._starts[self.is_bad & (self._ends > self._starts)]] += 1
        steps[self._ends[self.is_bad & (self._ends > self._starts)]] -= 1
        contents = {}
        for slot, (before, begin, end) in self._spans.items():
            contents[slot] = content_of(self._data, begin[good], end[good])
            is_there = good & (begin > before)
            data[before[is_there]] = 0
            steps[before[is_there] + 1] += 1
            steps[end[is_there]] -= 1
            lengths -= np.where(is_there, end - before - 1, 0)[good]
        is_kept = np.cumsum(steps[:-1], dtype=np.int8) == 0
        last = self._ends[-1] if len(good) else 0
        return binary_array(Content(data[:last][is_kept[:last]], lengths), None), contents

    def _walk(self, plan: plans.Plan, rows: Rows) -> None:
        if not len(rows):
            return
        match plan:
            case plans.StructPlan():
                for field in plan.fields:
                    self._walk(field.plan, rows)
            case plans.ChoicePlan():
                chosen = self._number_within(rows, 0, plan.count - 1)
                for branch in plan.branches:
                    self._walk(branch.plan, rows[chosen == branch.index])
            case plans.ListPlan():
                self._items(plan.items, rows)
            case plans.MapPlan():
                self._items(plan.values, rows, is_map=True)
            case plans.EntriesPlan():
                self._items(plan.entry, rows)
            case plans.Scalar():
                self._scalar(plan, rows)

    def _scalar(self, plan: plans.Scalar, rows: Rows) -> None:
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
                before = self._at[rows]
                lengths = self._number(rows)
                begin = self._at[rows]
                self._skip(rows, lengths)
                if id(plan) in self._slots:
                    self._spans[self._slots[id(plan)]][:, rows] = before, begin, self._at[rows]
            case Primitive(kind):
                self._skip(rows, _WIDTHS[kind])

    def _items(self, item: plans.Plan, rows: Rows, *, is_map: bool = False) -> None:
        while len(rows):
            counts = self._number(rows)
            # A negative count is followed by the size of the block in bytes.
            with_size = rows[counts < 0]
            if len(with_size):
                self._number(with_size)
            counts = np.abs(counts)
            is_open = (counts != 0) & ~self.is_bad[rows]
            rows, counts = rows[is_open], counts[is_open]
            most = int(counts.max()) if len(counts) else 0
            self._steps += 1 + most
            if most > _ITEMS_MAX or self._steps > _STEPS_MAX:
                raise TooLong
            for number in range(most):
                some = rows[counts > number]
                if is_map:
                    self._walk(_TEXT, some)
                self._walk(item, some)
            rows = rows[~self.is_bad[rows]]

    def _number_within(self, rows: Rows, least: int, most: int) -> npt.NDArray[np.int64]:
        found = self._number(rows)
        is_wrong = (found < least) | (found > most)
        if is_wrong.any():
            self.is_bad[rows[is_wrong]] = True
        return found

    def _number(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Read the next number of each record."""
        raw, at = self._cursor.varints(rows, self._at[rows])
        self._cursor.go_to(rows, at)
        return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)

    def _skip(self, rows: Rows, count: "int | npt.NDArray[np.int64]") -> None:
        at = self._at[rows]
        # A length may be any number of 64 bits; anything beyond the data is bad all the same.
        self._cursor.go_to(rows, at + np.clip(count, -1, len(self._data)), least=at)
