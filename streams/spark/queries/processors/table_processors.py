"""Changes of tables, aggregates of them, and the newest of several rows, as Spark runs them."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import TimerValues
from typing_extensions import override

from streams.model.plan import DELETED, Aggregate, Changes, NewestRows, ProcessStep, UndoAggregates
from streams.model.sources import ROWOFFSET, ROWTIME
from streams.spark.queries.processors.groups import Group
from streams.spark.queries.processors.keyed import AggregateProcessor, KeyedProcessor
from streams.spark.queries.processors.rows import CHANGE, SIGN, Fields, column_types

TAKEN_BACK: Final = -1
REMOVED: Final = -2
"""Taken back for good: no row takes its place, which the other half of a join has to know."""


class ChangesProcessor(KeyedProcessor):
    """What changed in a table."""

    def __init__(self, step: ProcessStep, processor: Changes, extensions: str) -> None:
        super().__init__(step, extensions)
        self.processor = processor

    @override
    def prepare(self) -> None:
        self.fields = Fields(column_types(self.step.output))

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        found = self.fields.read(rows)
        time, deleted = self.fields.pick(ROWTIME), self.fields.pick(DELETED)
        values = self.fields.pick_all(self.processor.columns)
        offset = self.fields.pick(ROWOFFSET) if self.fields.has(ROWOFFSET) else None
        stored = self.load()
        key = self.fields.pick_all(self.step.keys)(found[0])
        change, before = stored or (0, None)
        # Only the last record counts: what the row was meanwhile, nothing behind this step has seen.
        row = found[-1]
        after = None if deleted(row) else values(row)
        if before is None and after is None:
            return
        change = change + 1 if offset is None else offset(row)
        others = {ROWTIME: time(row), CHANGE: change}
        if before is not None:
            yield self._row(key, before, {**others, SIGN: REMOVED if after is None else TAKEN_BACK})
        if after is None:
            self.state.clear()
        else:
            self.save((change, after))
            yield self._row(key, after, {**others, SIGN: 1})

    def _row(self, key: Sequence[object], values: Sequence[object], others: dict[str, object]) -> Row:
        named = {**dict(zip(self.processor.columns, values, strict=True)), **others}
        named |= zip(self.step.keys, key, strict=True)
        return self.make(*(named.get(name) for name in self.names))


class UndoProcessor(AggregateProcessor):
    """Aggregates of rows that are added and taken back."""

    def __init__(self, step: ProcessStep, processor: UndoAggregates, extensions: str) -> None:
        super().__init__(step, extensions)
        self.processor = processor

    @property
    @override
    def aggregates(self) -> tuple[Aggregate, ...]:
        return self.processor.aggregates

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        found = self.fields.read(rows)
        sign, time, picks = self.fields.pick(SIGN), self.fields.pick(ROWTIME), self.picks()
        stored = self.load()
        key = self.fields.pick_all(self.step.keys)(found[0])
        group = Group.new(self.aggregators) if stored is None else Group(self.aggregators, *stored)
        for row in found:
            group.change(sign(row), time(row), [pick(row) for pick in picks])
        results = group.results()
        if results is not None:
            self.save((group.rows, group.sequence, group.time, group.states))
        elif stored is not None:
            self.state.clear()
        else:
            return
        yield self.row(key, results, {ROWTIME: group.time})


class NewestProcessor(KeyedProcessor):
    """Leaves out rows that are older than one before."""

    def __init__(self, step: ProcessStep, processor: NewestRows, extensions: str) -> None:
        super().__init__(step, extensions)
        self.processor = processor

    @override
    def prepare(self) -> None:
        self.fields = Fields(column_types(self.step.output))

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        found = self.fields.read(rows)
        order, newest = self.fields.pick(self.processor.order), found[0]
        for row in found:
            if order(row) >= order(newest):
                newest = row
        before, now = self.load(), order(newest)
        if before is not None and now < before:
            return
        if now != before:
            self.save(now)
        yield self.make(*self.fields.pick_all(self.names)(newest))
