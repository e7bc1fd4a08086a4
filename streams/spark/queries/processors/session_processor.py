"""Aggregates of session windows as Spark runs them."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark import Accumulator
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues
from typing_extensions import override

from streams.model.plan import STREAM_TIME, Aggregate, ProcessStep, SessionAggregates
from streams.model.sources import ROWTIME, WINDOWEND, WINDOWSTART
from streams.spark.queries.processors.keyed import AggregateProcessor
from streams.spark.queries.processors.sessions import SessionRow, SessionWindows

_LONG_AGO: Final = -(1 << 62)


class SessionProcessor(AggregateProcessor):
    """Aggregates of session windows."""

    def __init__(
        self,
        step: ProcessStep,
        processor: SessionAggregates,
        extensions: str,
        delay_ms: int | None,
        late: Accumulator[int] | None,
    ) -> None:
        super().__init__(step, extensions)
        self.late = late
        self.processor = processor
        self.delay_ms = delay_ms
        """That of the watermark; None if there is none."""

    @property
    @override
    def aggregates(self) -> tuple[Aggregate, ...]:
        return self.processor.aggregates

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        found = self.fields.read(rows)
        time, picks = self.fields.pick(ROWTIME), self.picks()
        stream_time = self.fields.pick(STREAM_TIME if self.fields.has(STREAM_TIME) else ROWTIME)
        stored = self.load()
        windows = self._windows(stored)
        key = self.fields.pick_all(self.step.keys)(found[0])
        known = self._stream_time(timerValues)
        for row in found:
            values = [pick(row) for pick in picks]
            windows.add(SessionRow(time(row), max(stream_time(row), known), values))
        windows.close(known)
        if windows.late and self.late is not None:
            self.late.add(windows.late)
        yield from self._finish(key, windows, None if stored is None else stored[2])

    @override
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        stored = self.load()
        if stored is None or stored[2] is None or expiredTimerInfo.getExpiryTimeInMs() < stored[2]:
            return
        windows = self._windows(stored)
        windows.close(self._stream_time(timerValues))
        yield from self._finish(stored[0], windows, None)

    def _windows(self, stored: Any) -> SessionWindows:
        _, sequence, _, sessions = stored or (None, 0, None, [])
        one = self.processor
        return SessionWindows(one.gap_ms, one.grace_ms, self.aggregators, one.is_final, sessions, sequence)

    def _finish(self, key: Sequence[object], windows: SessionWindows, timer: int | None) -> Iterator[Row]:
        closes = windows.next_close()
        if closes is None:
            # What is left of the timer finds no state.
            self.state.clear()
        else:
            timer = self._register(closes, timer)
            self.save((key, windows.sequence, timer, windows.to_store()))
        for one in windows.emitted():
            bounds = {WINDOWSTART: one.start, WINDOWEND: one.end, ROWTIME: one.end}
            yield self.row(key, one.results, bounds)

    def _register(self, closes: int, timer: int | None) -> int | None:
        """Wake up when the first session is closed, unless there is an earlier timer, which will see to it."""
        if self.delay_ms is None:
            return None
        wanted = max(closes - self.delay_ms, 1)
        if timer is not None and timer <= wanted:
            return timer
        self.handle.registerTimer(wanted)
        return wanted

    def _stream_time(self, timers: TimerValues) -> int:
        """What the watermark says about the time of the stream."""
        if self.delay_ms is None:
            return _LONG_AGO
        watermark = timers.getCurrentWatermarkInMs()
        return watermark + self.delay_ms if watermark > 0 else _LONG_AGO
