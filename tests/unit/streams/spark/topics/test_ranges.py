import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.spark.topics.ranges import OffsetRange, RangePartition, limit_rows, split_ranges


def test_less_than_allowed_is_read_whole() -> None:
    assert limit_rows({("t", 0): 0}, {("t", 0): 10}, rows_max=10) == {("t", 0): 10}


def test_each_partition_gets_its_share() -> None:
    start = {("t", 0): 100, ("t", 1): 0, ("t", 2): 7}
    end = {("t", 0): 1000, ("t", 1): 100, ("t", 2): 7}
    assert limit_rows(start, end, rows_max=100) == {("t", 0): 190, ("t", 1): 10, ("t", 2): 7}


def test_a_partition_with_little_is_not_starved() -> None:
    start, end = {("t", 0): 0, ("t", 1): 0}, {("t", 0): 1_000_000, ("t", 1): 1}
    assert limit_rows(start, end, rows_max=10)["t", 1] == 1


@given(
    sizes=st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    rows_max=st.integers(1, 10**6),
)
def test_shares_are_never_more_than_there_is_and_always_some_progress(sizes: list[int], rows_max: int) -> None:
    start = {("t", number): 5 for number in range(len(sizes))}
    end = {("t", number): 5 + size for number, size in enumerate(sizes)}
    shared = limit_rows(start, end, rows_max=rows_max)
    read = {place: shared[place] - 5 for place in start}
    assert all(0 <= count <= end[place] - 5 for place, count in read.items())
    assert all(count > 0 for place, count in read.items() if end[place] > 5)
    assert sum(read.values()) <= rows_max + len(sizes)


@pytest.mark.parametrize(
    ("sizes", "parts_min", "rows_max", "expected"),
    [
        ([10, 0, 5], None, None, [10, 5]),
        ([10, 5], 2, None, [10, 5]),
        ([10], 3, None, [3, 3, 4]),
        ([100, 1, 1], 4, None, [50, 50, 1, 1]),
        ([10, 25], None, 10, [10, 8, 8, 9]),
        ([2], 5, None, [1, 1]),
        ([], 4, None, []),
    ],
)
def test_ranges_are_divided(sizes: list[int], parts_min: int | None, rows_max: int | None, expected: list[int]) -> None:
    ranges = [OffsetRange("t", number, 3, 3 + size) for number, size in enumerate(sizes)]
    assert [part.size for part in split_ranges(ranges, parts_min=parts_min, rows_max=rows_max)] == expected


@given(sizes=st.lists(st.integers(0, 1000), max_size=8), parts_min=st.integers(1, 40))
def test_parts_are_the_whole_again(sizes: list[int], parts_min: int) -> None:
    ranges = [OffsetRange("t", number, 3, 3 + size) for number, size in enumerate(sizes)]
    parts = split_ranges(ranges, parts_min=parts_min)
    found = [(part.partition, offset) for part in parts for offset in range(part.start, part.end)]
    assert found == [(item.partition, offset) for item in ranges for offset in range(item.start, item.end)]


def test_what_a_task_reads_travels() -> None:
    there = pickle.loads(pickle.dumps(RangePartition(OffsetRange("t", 1, 2, 3))))
    assert there.range == OffsetRange("t", 1, 2, 3)
