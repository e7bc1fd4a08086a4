import resource
import struct
from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.log.offset_index import OffsetIndex
from core_broker.log.transaction_index import CorruptIndexError

ENTRIES = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000)), max_size=700)


def filled(path: Path, steps: list[tuple[int, int]], base: int = 1000) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    path.unlink(missing_ok=True)
    index = OffsetIndex(path, base, 10 << 20)
    entries = []
    offset, position = base, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        entries.append((offset, position))
    return index, entries


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(steps=ENTRIES, targets=st.lists(st.integers(900, 20_000), max_size=20))
def test_lookup_finds_the_last_entry_at_or_below(
    tmp_path: Path, steps: list[tuple[int, int]], targets: list[int]
) -> None:
    index, entries = filled(tmp_path / "i", steps)
    for target in targets + [offset for offset, _ in entries[:20]]:
        slot = bisect_right([offset for offset, _ in entries], target)
        assert index.lookup(target) == (entries[slot - 1] if slot else (1000, 0))
        slot = bisect_right([position for _, position in entries], target)
        assert index.lookup_position(target) == (entries[slot - 1] if slot else (1000, 0))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(steps=ENTRIES)
def test_entries_come_back_from_the_trimmed_file(tmp_path: Path, steps: list[tuple[int, int]]) -> None:
    index, entries = filled(tmp_path / "i", steps)
    index.trim()
    content = (tmp_path / "i").read_bytes() if entries else b""
    assert content == b"".join(struct.pack(">ii", offset - 1000, position) for offset, position in entries)
    again = OffsetIndex(tmp_path / "i", 1000, 10 << 20, size=len(content))
    again.check()
    assert again.last() == again.peek_last() == (entries[-1] if entries else (1000, 0))


def test_an_index_without_entries_has_no_file(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "i", 0, 10 << 20)
    assert index.lookup(5) == (0, 0)
    index.trim()
    index.flush()
    assert list(tmp_path.iterdir()) == []


def test_the_file_grows_by_doubling_not_at_once(tmp_path: Path) -> None:
    filled(tmp_path / "i", [(1, 1)] * 600)
    assert (tmp_path / "i").stat().st_size == 8192


def test_its_limit_counts_whole_entries(tmp_path: Path) -> None:
    assert OffsetIndex(tmp_path / "i", 0, 30).count_max == 3


def test_truncation_forgets_later_entries(tmp_path: Path) -> None:
    index, entries = filled(tmp_path / "i", [(10, 100)] * 20)
    index.truncate_to(entries[7][0])
    assert (index.count, index.last()) == (7, entries[6])
    assert (tmp_path / "i").stat().st_size == 7 * 8
    index.append(*entries[7])
    assert index.last() == entries[7]


def test_the_file_is_trimmed_even_after_it_was_let_go_of(tmp_path: Path) -> None:
    index, _ = filled(tmp_path / "i", [(10, 100)] * 5)
    index.release()
    index.trim()
    assert (tmp_path / "i").stat().st_size == 5 * 8


def test_an_entry_for_which_the_disk_has_no_room_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index, entries = filled(tmp_path / "i", [(1, 1)] * 512)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        index.append(5000, 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caplog.messages == ["index cannot grow"]
    assert index.lookup(6000) == entries[-1]
    index.append(5000, 5000)
    assert index.lookup(6000) == (5000, 5000)


def test_appends_go_on_after_the_file_was_let_go_of(tmp_path: Path) -> None:
    index, entries = filled(tmp_path / "i", [(10, 100)] * 5)
    index.release()
    index.append(2000, 9999)
    assert index.lookup(2000) == (2000, 9999)
    assert index.lookup(1999) == entries[-1]


@pytest.mark.parametrize(
    "entries",
    [
        [(5, 10), (5, 20)],
        [(5, 10), (4, 20)],
        [(5, 20), (6, 20)],
        [(5, 20), (6, 10)],
        [(-1, 5)],
        [(5, -1)],
        [(5, 10), (0, 0), (0, 0)],
    ],
)
def test_entries_that_do_not_rise_are_noticed_at_the_first_use(tmp_path: Path, entries: list[tuple[int, int]]) -> None:
    (tmp_path / "i").write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
    index = OffsetIndex(tmp_path / "i", 0, 1000, size=8 * len(entries))
    with pytest.raises(CorruptIndexError):
        index.lookup(100)


def test_a_file_that_has_shrunk_or_gone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "i").write_bytes(bytes(8))
    with pytest.raises(CorruptIndexError, match="expected"):
        OffsetIndex(tmp_path / "i", 0, 1000, size=16).lookup(1)
    with pytest.raises(CorruptIndexError, match="missing"):
        OffsetIndex(tmp_path / "gone", 0, 1000, size=16).lookup(1)
