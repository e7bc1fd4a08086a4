"""Which offsets a batch reads, and how they are divided among tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

TopicPartition = tuple[str, int]
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
        """The number of offsets; some may have no record."""
        return self.end - self.start


class RangePartition(InputPartition):
    """What one task of Spark reads."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)
        self.range = value


def limit_rows(start: Offsets, end: Offsets, *, rows_max: int) -> dict[TopicPartition, int]:
    """Earlier ends, so that about `rows_max` offsets are read: each partition gets a share in proportion to its size.

    A small partition gets at least one, so that it never starves; partitions that `start` lacks are left out.
    """
    sizes = {item: end[item] - first for item, first in start.items() if end.get(item, first) > first}
    total = sum(sizes.values())
    limited = {item: offset for item, offset in end.items() if item in start}
    if total <= rows_max:
        return limited
    for item, size in sizes.items():
        share = rows_max * size / total
        rows = math.ceil(share) if share < 1 else math.floor(share)
        limited[item] = min(end[item], start[item] + rows)
    return limited


def split_ranges(
    ranges: Sequence[OffsetRange], *, parts_min: int | None = None, rows_max: int | None = None
) -> list[OffsetRange]:
    """The ranges that are not empty, in at least `parts_min` parts of at most `rows_max` offsets."""
    parts = [
        part
        for item in ranges
        if item.size > 0
        for part in _cut(item, 1 if rows_max is None else math.ceil(item.size / rows_max))
    ]
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
