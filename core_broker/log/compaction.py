"""Compaction of one log: when it is due, how far it may go, and its execution.

`cleaner` does the work in a thread, on closed segments, with values copied on the event loop. The result is swapped in
on the event loop, after a check that the log still has the original segments; if it was truncated or deleted in the
meantime, the result is discarded.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

from core_broker.log.batch_filter import CleaningRound, TransactionTracker
from core_broker.log.cleaned_segment import CleanedSegment
from core_broker.log.cleaner import AbortedLookup, Pacer, SourceSegment, clean_group, read_keys
from core_broker.log.key_offsets import KeyOffsets
from core_broker.log.offset_index import RELATIVE_OFFSET_MAX
from core_broker.log.partition_log import PartitionLog
from core_broker.log.scan import walk
from core_broker.log.segment import Segment
from core_broker.log.transaction_index import CorruptIndexError
from core_broker.protocol.records import CorruptBatch
from core_broker.service.clock import Clock
from core_broker.settings import TopicSettings

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """How far a log can be cleaned, and how urgent it is."""

    first_dirty_offset: int
    end_offset: int
    """First uncleanable offset: always the base offset of a segment."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """The oldest dirty record is older than max.compaction.lag.ms."""

    @property
    def dirty_ratio(self) -> float:
        """The fraction of the log below the first uncleanable offset that was never cleaned."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, settings: TopicSettings) -> bool:
        """Whether the log should be cleaned now."""
        is_dirty_enough = self.dirty_ratio > settings.min_cleanable_dirty_ratio
        return self.dirty_bytes > 0 and (is_dirty_enough or self.is_overdue)


def plan_cleaning(compacted: PartitionLog, *, checkpoint: int | None, high_watermark: int, now_ms: int) -> CleaningPlan:
    """Plan the cleaning of a log; `checkpoint` is the offset up to which it was cleaned before, if it was."""
    first_dirty = _first_dirty_offset(compacted, checkpoint)
    end = _first_uncleanable_offset(compacted, first_dirty, high_watermark, now_ms)
    closed = [segment for segment in compacted.segments if segment.base_offset < end]
    # The segment with the first dirty offset counts as dirty, unless that offset is not cleanable.
    ends = _end_offsets(closed, end)
    dirty = [segment for segment, segment_end in zip(closed, ends, strict=True) if segment_end > first_dirty]
    dirty_bytes = sum(segment.size for segment in dirty)
    return CleaningPlan(
        first_dirty_offset=first_dirty,
        end_offset=end,
        clean_bytes=sum(segment.size for segment in closed) - dirty_bytes,
        dirty_bytes=dirty_bytes,
        is_overdue=_is_overdue(dirty, compacted.settings.max_compaction_lag_ms, now_ms),
    )


def _end_offsets(segments: Sequence[Segment], end_offset: int) -> list[int]:
    """The end of each segment: the base offset of the next one."""
    return [*(segment.base_offset for segment in segments[1:]), end_offset][: len(segments)]


def _first_dirty_offset(compacted: PartitionLog, checkpoint: int | None) -> int:
    """Where cleaning continues; at the start if the checkpoint is not within the log (KAFKA-3330)."""
    if checkpoint is None or not compacted.start_offset <= checkpoint <= compacted.end_offset:
        return compacted.start_offset
    return checkpoint


def _first_uncleanable_offset(compacted: PartitionLog, first_dirty: int, high_watermark: int, now_ms: int) -> int:
    """Base of the first segment that cannot be cleaned: active, with open transactions, not replicated, too recent."""
    unstable = compacted.first_unstable_offset
    limit = high_watermark if unstable is None else min(high_watermark, unstable)
    youngest_ms = now_ms - compacted.settings.min_compaction_lag_ms
    has_lag = compacted.settings.min_compaction_lag_ms > 0
    segments = compacted.segments
    for segment, following in pairwise(segments):
        is_decided = following.base_offset <= limit
        is_young = (
            has_lag and following.base_offset > first_dirty and segment.greatest_timestamp.timestamp > youngest_ms
        )
        if not is_decided or is_young:
            return segment.base_offset
    return segments[-1].base_offset


def _is_overdue(dirty: Sequence[Segment], max_lag_ms: int, now_ms: int) -> bool:
    """Whether a dirty record has waited too long; judged by the first batch of each segment, as in Kafka."""
    oldest_ms = now_ms - max_lag_ms
    if oldest_ms <= 0:
        return False
    return any(0 <= _first_timestamp(segment) < oldest_ms for segment in dirty)


def _first_timestamp(segment: Segment) -> int:
    for _, fields in walk(segment.file, 0, segment.size):
        return fields[8]
    return -1


def group_segments(segments: Sequence[SourceSegment], settings: TopicSettings) -> Iterator[list[SourceSegment]]:
    """Adjacent segments that fit into one together, so that cleaned logs do not end up with many tiny segments."""
    group: list[SourceSegment] = []
    for segment in segments:
        if group and not _fits(group, segment, settings):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _fits(group: list[SourceSegment], segment: SourceSegment, settings: TopicSettings) -> bool:
    size_bytes = sum(member.size_bytes for member in group) + segment.size_bytes
    index_bytes = sum(member.index_bytes for member in group) + segment.index_bytes
    return (
        size_bytes <= settings.segment_bytes
        and index_bytes <= settings.segment_index_bytes
        and segment.end_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningResult:
    """The result of a cleaning round."""

    cleaned_to_offset: int
    bytes_before: int
    bytes_after: int


class Compactor:
    """Runs cleaning rounds, one log at a time."""

    def __init__(
        self, clock: Clock, executor: Executor, *, buffer_bytes: int, bytes_per_second: float = float("inf")
    ) -> None:
        self._clock = clock
        self._executor = executor
        self.buffer_bytes = buffer_bytes
        """Memory for the keys of one round; a change counts from the next round on."""
        self.bytes_per_second = bytes_per_second
        """Most bytes per second that a round reads and writes; a change counts from the next round on."""
        self._stop = threading.Event()

    def stop(self) -> None:
        """Stop running rounds soon, and prevent new ones."""
        self._stop.set()

    async def clean(
        self, compacted: PartitionLog, plan: CleaningPlan, *, is_current: Callable[[], bool] = lambda: True
    ) -> CleaningResult | None:
        """Clean a log as planned; None if it changed in the meantime.

        `is_current` returns False once the log was deleted: another one may then be in the same directory. Raises
        CorruptBatch or CorruptIndexError if the log cannot be read, OSError if the disk fails, and
        CleaningStoppedError.
        """
        originals = [segment for segment in compacted.segments if segment.base_offset < plan.end_offset]
        swap = _Swap(compacted, originals, is_current)
        try:
            return await self._clean(compacted, plan, originals, swap)
        except (OSError, CorruptBatch, CorruptIndexError):
            if swap.is_possible():
                raise
            swap.log_abandoned()
            return None

    async def _clean(
        self, compacted: PartitionLog, plan: CleaningPlan, originals: Sequence[Segment], swap: "_Swap"
    ) -> CleaningResult | None:
        sources = [
            SourceSegment(
                base_offset=segment.base_offset,
                end_offset=end,
                size_bytes=segment.size,
                index_bytes=max(segment.offsets.size_bytes, segment.times.size_bytes),
                log_path=segment.path,
                transaction_index_path=segment.transactions.path,
            )
            for segment, end in zip(originals, _end_offsets(originals, plan.end_offset), strict=True)
        ]
        later = [s.transactions.path for s in compacted.segments if s.base_offset >= plan.end_offset]
        aborted = AbortedLookup(sources, later)
        pacer = Pacer(self._clock, self._stop, bytes_per_second=self.bytes_per_second)
        dirty = [source for source in sources if source.end_offset > plan.first_dirty_offset]
        keys = KeyOffsets.of_size(self.buffer_bytes)
        keys.end_offset = plan.first_dirty_offset
        read = partial(read_keys, first_dirty_offset=plan.first_dirty_offset, aborted=aborted, pacer=pacer)
        found = await self._in_thread(partial(read, dirty, keys))
        work = partial(
            clean_group,
            cleaning=CleaningRound(
                keys=found.keys,
                last_offset=found.last_offset,
                now_ms=self._clock.now_ms(),
                delete_retention_ms=compacted.settings.delete_retention_ms,
                producers={producer.producer_id: producer for producer in compacted.producers.active_producers()},
                last_data_offsets=compacted.producers.last_data_offsets(),
            ),
            transactions=TransactionTracker(),
            aborted=aborted,
            pacer=pacer,
        )
        within = [source for source in sources if source.base_offset < found.keys.end_offset]
        for group in group_segments(within, compacted.settings):
            new_segment = partial(CleanedSegment, compacted.directory, group[0].base_offset, compacted.settings)
            cleaned = await self._in_thread(partial(work, group, new_segment=new_segment))
            if cleaned is not None and not swap.swap_in(group, cleaned):
                return None
        return CleaningResult(
            cleaned_to_offset=found.keys.end_offset,
            bytes_before=sum(source.size_bytes for source in within),
            bytes_after=sum(s.size for s in compacted.segments if s.base_offset < found.keys.end_offset),
        )

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


class _Swap:
    """Replaces segments by their cleaned versions, as long as the log has not changed since the plan."""

    def __init__(self, compacted: PartitionLog, originals: Sequence[Segment], is_current: Callable[[], bool]) -> None:
        self._log = compacted
        self._is_current = is_current
        self._expected = [(segment, segment.size) for segment in originals]

    def swap_in(self, group: Sequence[SourceSegment], cleaned: CleanedSegment) -> bool:
        """Swap one group; False, and the cleaned files are deleted, if the log was truncated or closed."""
        if not self.is_possible():
            cleaned.discard()
            self.log_abandoned()
            return False
        first, last = group[0].base_offset, group[-1].base_offset
        replaced = [segment for segment, _ in self._expected if first <= segment.base_offset <= last]
        swapped = cleaned.swap(self._log.settings)
        self._log.replace_segments(replaced, [swapped], reason="compaction")
        kept = [pair for pair in self._expected if not first <= pair[0].base_offset <= last]
        self._expected = sorted([*kept, (swapped, swapped.size)], key=lambda pair: pair[0].base_offset)
        return True

    def log_abandoned(self) -> None:
        """Log why there is no result."""
        extra = {"topic": self._log.topic, "partition": self._log.partition}
        log.info("compaction abandoned: the log has changed", extra=extra)

    def is_possible(self) -> bool:
        """Whether the cleaned part is unchanged: after a truncation within it, a swap would restore dropped records."""
        present = self._log.segments
        return (
            self._is_current()
            and self._log.failure is None
            and len(present) > len(self._expected)
            and all(
                found is segment and found.size == size
                for found, (segment, size) in zip(present, self._expected, strict=False)
            )
        )
