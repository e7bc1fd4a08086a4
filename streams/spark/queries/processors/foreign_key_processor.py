"""The right half of a foreign-key join as Spark runs it."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, TimerValues
from typing_extensions import override

from streams.model.plan import DELETED, ForeignKeyJoin, ProcessStep
from streams.model.sources import ROWTIME
from streams.spark.queries.processors.joined import ForeignKeyState, Joined, LeftChange, LeftKey, Stored
from streams.spark.queries.processors.keyed import KeyedProcessor
from streams.spark.queries.processors.rows import SIDE, SIGN, Fields, column_types
from streams.spark.queries.processors.stored import dump, read


class _StoredRows:
    """The left rows in Spark's state."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, key: LeftKey) -> Stored | None:
        """One of them."""
        found = self._state.getValue((key,))
        return None if found is None else read(found[0])

    def items(self) -> Iterator[tuple[LeftKey, Stored]]:
        """All of them."""
        for key, value in self._state.iterator():
            yield bytes(key[0]), read(value[0])


class ForeignKeyProcessor(KeyedProcessor):
    """Keeps the right row as its value, and the left rows in a map, because there may be many."""

    def __init__(self, step: ProcessStep, processor: ForeignKeyJoin, extensions: str) -> None:
        super().__init__(step, extensions)
        self.processor = processor
        self.left = tuple(dict.fromkeys((*processor.left_key, *processor.left)))

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self.rows = handle.getMapState("rows", "key binary", "value binary")

    @override
    def prepare(self) -> None:
        self.fields = Fields(column_types(self.step.output))

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        found = self.fields.read(rows)
        join = ForeignKeyState(self.processor.kind == "LEFT", _StoredRows(self.rows), self.load())
        self._change(join, found)
        joined = list(join.joined())
        for left_key, row in join.changed_rows():
            if row is None:
                self.rows.removeKey((left_key,))
            else:
                self.rows.updateValue((left_key,), (dump(row),))
        if join.right is not None and join.right_is_changed:
            self.save(join.right)
        elif join.right_is_changed and join.right_before is not None:
            self.state.clear()
        for one in joined:
            yield self._row(one)

    def _change(self, join: ForeignKeyState, rows: Sequence[Row]) -> None:
        one, fields = self.processor, self.fields
        side, sign, time, deleted = (fields.pick(name) for name in (SIDE, SIGN, ROWTIME, DELETED))
        left_key, left, right = (fields.pick_all(names) for names in (one.left_key, self.left, one.right))
        for row in rows:
            if side(row):
                join.change_right(time(row), None if deleted(row) else right(row))
            else:
                change = LeftChange(dump(left_key(row)), sign(row), (time(row), left(row)))
                join.change_left(change)

    def _row(self, one: Joined) -> Row:
        values: dict[str, object] = dict(zip(self.left, one.left[1], strict=True))
        if one.right is not None:
            values |= zip(self.processor.right, one.right[1], strict=True)
        values |= {ROWTIME: one.time, DELETED: one.is_deleted}
        return self.make(*(values.get(name) for name in self.names))
