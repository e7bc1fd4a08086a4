"""The segments of one log in order: lookups, reads, replacement and deletion."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from core_broker.log.log_file import LogFile
from core_broker.log.scan import HeaderFields
from core_broker.log.segment import DELETED_SUFFIX, Segment

_HINTS_MAX: Final = 64


class LogSlice(msgspec.Struct):
    """Complete batches in a file. The file stays open as long as this is referenced, even after its deletion."""

    file: LogFile
    position: int
    length: int
    next_offset: int
    """The offset after the slice, or a lower bound for it."""


class SegmentChain:
    """Segments, oldest first; the last one is active, the only one that is appended to."""

    __slots__ = ("_deletions", "_hints", "_segments", "active", "bases")

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments
        self.bases = [segment.base_offset for segment in segments]
        """The base offset of each segment."""
        self.active = segments[-1]
        self._deletions: deque[tuple[float, Segment]] = deque()
        self._hints: dict[int, tuple[Segment, int]] = {}
        """The positions of offsets that consumers are likely to read next."""

    def all(self) -> Sequence[Segment]:
        """The current segments."""
        return tuple(self._segments)

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, upper_offset: int, end_offset: int, at_least_one: bool
    ) -> LogSlice | None:
        """Complete batches of one segment from the one that contains `offset`, below `upper_offset`; None if none.

        With `at_least_one` the first batch is returned even if it is larger than `max_bytes`.
        """
        bases = self.bases
        number = len(bases) - 1 if offset >= bases[-1] else bisect_right(bases, offset) - 1
        while number < len(bases) and bases[number] < upper_offset:
            segment = self._segments[number]
            start = self._position(segment, offset)
            if start is not None:
                # If this batch does not fit, nothing is returned: a smaller one further on would leave a gap.
                next_base = bases[number + 1] if number + 1 < len(bases) else end_offset
                return self._slice(segment, start, next_base, max_bytes, upper_offset, at_least_one)
            number += 1  # compaction may have removed the last batches of a segment
        return None

    def _position(self, segment: Segment, offset: int) -> int | None:
        """Where the batch with `offset`, or the next one, begins in a segment; None if all batches are before it."""
        # A consumer that reads sequentially continues where its last read ended: that saves the index lookup.
        hint = self._hints.get(offset)
        if hint is not None and hint[0] is segment:
            return hint[1] if hint[1] < segment.size else None
        place = segment.locate(offset)
        return None if place is None else place.position

    def _slice(
        self, segment: Segment, start: int, end_offset: int, max_bytes: int, upper_offset: int, at_least_one: bool
    ) -> LogSlice | None:
        limit = start + max_bytes
        end, next_offset = segment.find_end(start, limit, upper_offset, end_offset, at_least_one=at_least_one)
        if end == start:
            return None
        hints = self._hints
        hints[next_offset] = (segment, end)
        if len(hints) > _HINTS_MAX:
            del hints[next(iter(hints))]
        return LogSlice(segment.file, start, end - start, next_offset)

    def scan(self, start: int, end: int) -> Iterator[tuple[HeaderFields, memoryview]]:
        """Header and bytes of all batches that overlap [start, end)."""
        for segment in tuple(self._segments):
            if segment.base_offset >= end or not segment.size:
                continue
            place = segment.locate(start)
            for _, fields, batch in segment.scan(place.position) if place is not None else ():
                if fields[0] >= end:
                    return
                yield fields, batch

    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that a read of [start, end) must skip."""
        found: list[tuple[int, int]] = []
        for number in range(max(0, bisect_right(self.bases, start) - 1), len(self.bases)):
            aborted, is_complete = self._segments[number].transactions.collect(start, end)
            found.extend((entry.producer_id, entry.first_offset) for entry in aborted)
            if is_complete:
                break
        return found

    # --- adding and removing ------------------------------------------------------------------------------------------

    def add(self, segment: Segment) -> None:
        """Add a new active segment; the former one is deleted if it is empty."""
        if not self.active.size:
            self._segments.pop().delete()
            self.bases.pop()
        self._segments.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment

    def replace(self, old: Sequence[Segment], new: Iterable[Segment], *, delete_files_at: float) -> None:
        """Replace some segments, never the active one; the old files get a suffix until they are deleted.

        New files with the suffix `.swap` are renamed to their final names here.
        """
        removed = set(map(id, old))
        if id(self.active) in removed:
            raise ValueError("the active segment cannot be replaced")
        for segment in old:
            segment.rename(DELETED_SUFFIX)
            self._deletions.append((delete_files_at, segment))
        for segment in new:
            if segment.suffix:
                segment.rename("")
        kept = [segment for segment in self._segments if id(segment) not in removed]
        self._segments = sorted([*kept, *new], key=lambda segment: segment.base_offset)
        self.bases = [segment.base_offset for segment in self._segments]
        self._hints.clear()

    def remove_files(self, *, now: float) -> int:
        """Delete the files of replaced segments that are due; returns the number of segments."""
        count = 0
        while self._deletions and self._deletions[0][0] <= now:
            self._deletions.popleft()[1].delete()
            count += 1
        return count

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that contains `offset` and all after it; returns the next offset to be assigned.

        `offset` must be above the base offset of the first segment.
        """
        while self.bases[-1] >= offset:
            self._segments.pop().delete()
            self.bases.pop()
        self.active = self._segments[-1]
        self._hints.clear()
        return self.active.truncate_to(offset)

    def reset(self, segment: Segment) -> None:
        """Replace everything by one new segment, whose file is created last, as it may have the name of an old one."""
        for former in self._segments:
            former.delete()
        segment.create()
        self._segments, self.bases, self.active = [segment], [segment.base_offset], segment
        self._hints.clear()
