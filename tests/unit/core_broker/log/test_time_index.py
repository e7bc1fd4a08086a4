import struct
from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.log.time_index import TimeIndex
from core_broker.log.transaction_index import CorruptIndexError


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    steps=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=500),
    targets=st.lists(st.integers(-5, 6000), max_size=20),
)
def test_lookup_finds_the_last_entry_at_or_before(
    tmp_path: Path, steps: list[tuple[int, int]], targets: list[int]
) -> None:
    (tmp_path / "t").unlink(missing_ok=True)
    index = TimeIndex(tmp_path / "t", 50, 10 << 20)
    entries: list[tuple[int, int]] = []
    timestamp, offset = 0, 50
    for later, further in steps:
        timestamp, offset = timestamp + later, offset + further
        index.append(timestamp, offset)
        if not entries or timestamp > entries[-1][0]:
            entries.append((timestamp, offset))
    assert index.count == len(entries)
    for target in targets + [timestamp for timestamp, _ in entries[:10]]:
        slot = bisect_right([timestamp for timestamp, _ in entries], target)
        assert index.lookup(target) == (entries[slot - 1] if slot else (-1, 50))
    index.trim()
    if entries:
        packed = b"".join(struct.pack(">qi", timestamp, offset - 50) for timestamp, offset in entries)
        assert (tmp_path / "t").read_bytes() == packed
        TimeIndex(tmp_path / "t", 50, 10 << 20, size=len(packed)).check()


def test_batches_without_timestamp_make_no_entry(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 0, 1000)
    index.append(-1, 5)
    assert index.count == 0
    assert list(tmp_path.iterdir()) == []


def test_truncation_forgets_entries_by_offset(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 0, 1000)
    for number in range(10):
        index.append(number * 100, number * 7)
    index.truncate_to(21)
    assert (index.count, index.last()) == (3, (200, 14))


@pytest.mark.parametrize("entries", [[(5, 1), (5, 2)], [(5, 1), (4, 2)], [(5, 2), (6, 2)], [(-3, 1)], [(3, -1)]])
def test_entries_that_do_not_rise_are_noticed_at_the_first_use(tmp_path: Path, entries: list[tuple[int, int]]) -> None:
    (tmp_path / "t").write_bytes(b"".join(struct.pack(">qi", *entry) for entry in entries))
    index = TimeIndex(tmp_path / "t", 0, 1000, size=12 * len(entries))
    with pytest.raises(CorruptIndexError):
        index.last()
