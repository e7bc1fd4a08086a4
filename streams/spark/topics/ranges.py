"""Which offsets a batch reads, and how they are divided among tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

TopicPartition = tuple[str, int]
"""Topic and partition."""
Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition, from `start` until before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets there are; some may have no record."""
        return self.end - self.start


class RangePartition(InputPartition):
    """What one task of Spark reads."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)
        self.range = value


def shared_out(start: Offsets, end: Offsets, *, rows_max: int) -> dict[TopicPartition, int]:
    """Ends that are nearer, so that about `rows_max` offsets are read: each partition gets its share of them.

    A partition with little gets at least one, so that it never starves; partitions that `start` lacks are left out.
    """
    sizes = {place: end[place] - first for place, first in start.items() if end.get(place, first) > first}
    total = sum(sizes.values())
    nearer = {place: offset for place, offset in end.items() if place in start}
    if total <= rows_max:
        return nearer
    for place, size in sizes.items():
        share = rows_max * size / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        nearer[place] = min(end[place], start[place] + rows)
    return nearer


def divided(
    ranges: Sequence[OffsetRange], *, parts_min: int | None = None, rows_max: int | None = None
) -> list[OffsetRange]:
    """The ranges that hold anything, cut into at least so many parts, and none longer than is allowed."""
    parts = [part for item in ranges if item.size > 0 for part in _cut(item, _parts_of(item, rows_max))]
    if parts_min is None or parts_min <= len(parts):
        return parts
    total = sum(item.size for item in parts)
    large = [item for item in parts if _share(item.size, total, parts_min) > 1]
    large_total = sum(item.size for item in large)
    for_large = max(1, parts_min - (len(parts) - len(large)))
    result = []
    for item in parts:
        count = _share(item.size, large_total, for_large) if item in large else 1
        result += _cut(item, count)
    return result


def _parts_of(item: OffsetRange, rows_max: int | None) -> int:
    return 1 if rows_max is None else math.ceil(item.size / rows_max)


def _share(size: int, total: int, parts: int) -> int:
    return max(1, math.floor(size / total * parts + 0.5))


def _cut(item: OffsetRange, count: int) -> list[OffsetRange]:
    """Parts of about the same size."""
    parts, start = [], item.start
    for left in range(min(count, item.size), 0, -1):
        end = start + (item.end - start) // left
        parts.append(OffsetRange(item.topic, item.partition, start, end))
        start = end
    return parts
