"""Decides which segments have expired or lie below the log start, without I/O.

Segments are deleted from the oldest, without gaps, and never past the high watermark. With cleanup.policy=compact
alone, age and size do not matter; segments below the log start offset (DeleteRecords) are deleted with any policy.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from core_broker.settings import TopicSettings


class RetainedSegment(Protocol):
    """What retention needs to know about a segment; tests use plain values."""

    @property
    def base_offset(self) -> int:
        """First offset of the segment."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of its batches."""
        ...

    @property
    def retention_timestamp(self) -> int:
        """Its greatest record timestamp, or its modification time if no record has one."""
        ...


class Expiry(NamedTuple):
    """How many of the oldest segments to delete, and why."""

    segment_count: int
    reason: str


def expired_segments(
    segments: Sequence[RetainedSegment],
    settings: TopicSettings,
    *,
    now_ms: int,
    high_watermark: int,
    start_offset: int,
    end_offset: int,
) -> Expiry:
    """The number of oldest segments to delete.

    If these are all segments, the active one has expired, too: the caller rolls before it deletes.
    """
    by_reason = [("log start offset", _below_start(segments, start_offset))]
    if "delete" in settings.cleanup_policy:
        by_reason.append(("retention.bytes", _beyond_size(segments, settings.retention_bytes)))
        by_reason.append(("retention.ms", _beyond_age(segments, settings.retention_ms, now_ms)))
    reason, count = max(by_reason, key=lambda found: found[1])
    return Expiry(min(count, _below_watermark(segments, high_watermark, end_offset)), reason)


def _below_start(segments: Sequence[RetainedSegment], start_offset: int) -> int:
    """Segments that end at or below the log start; the last one has no known end and is kept."""
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= start_offset:
        count += 1
    return count


def _beyond_size(segments: Sequence[RetainedSegment], retention_bytes: int) -> int:
    """Segments without which the log would still have `retention_bytes`."""
    if retention_bytes < 0:
        return 0
    surplus = sum(segment.size_bytes for segment in segments) - retention_bytes
    count = 0
    for segment in segments:
        surplus -= segment.size_bytes
        if surplus < 0 or _is_empty_and_last(segments, count):
            break
        count += 1
    return count


def _beyond_age(segments: Sequence[RetainedSegment], retention_ms: int, now_ms: int) -> int:
    """Segments whose newest record is older than `retention_ms`; a record from the future keeps all later segments."""
    if retention_ms < 0:
        return 0
    count = 0
    for segment in segments:
        if _is_empty_and_last(segments, count) or now_ms - segment.retention_timestamp <= retention_ms:
            break
        count += 1
    return count


def _below_watermark(segments: Sequence[RetainedSegment], high_watermark: int, end_offset: int) -> int:
    """Segments entirely below the high watermark: others may still be truncated."""
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    count = 0
    while count < len(segments) and ends[count] <= high_watermark:
        count += 1
    return count


def _is_empty_and_last(segments: Sequence[RetainedSegment], index: int) -> bool:
    return index == len(segments) - 1 and segments[index].size_bytes == 0
