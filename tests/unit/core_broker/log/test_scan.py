from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.log.log_file import LogFile
from core_broker.log.scan import SCAN_BYTES, WALK_BYTES, BrokenBatch, scan, scan_verified, walk
from core_broker.protocol.records import Record, build_batch

SIZES = st.lists(st.sampled_from([0, 1, 100, 3000, WALK_BYTES - 61, WALK_BYTES, 50_000]), min_size=1, max_size=30)


def write(path: Path, sizes: list[int]) -> tuple[LogFile, list[tuple[int, int]], int]:
    content = bytearray()
    expected = []
    for offset, size in enumerate(sizes):
        expected.append((len(content), offset))
        content += build_batch([Record(value=bytes(size))], base_offset=offset)
    path.write_bytes(content)
    return LogFile(path), expected, len(content)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(sizes=SIZES)
def test_both_ways_find_every_batch(tmp_path: Path, sizes: list[int]) -> None:
    file, expected, end = write(tmp_path / "f", sizes)
    assert [(position, fields[0]) for position, fields in walk(file, 0, end)] == expected
    assert [(position, fields[0]) for position, fields, _ in scan(file, 0, end)] == expected
    assert [(position, fields[0]) for position, fields, _, _ in scan_verified(file, 0, end)] == expected


def test_batches_larger_than_a_piece_are_read_whole(tmp_path: Path) -> None:
    sizes = [10, SCAN_BYTES + 5, 10, 2 * SCAN_BYTES, SCAN_BYTES - 100, 10]
    file, expected, end = write(tmp_path / "f", sizes)
    found = list(scan(file, 0, end))
    assert [(position, fields[0]) for position, fields, _ in found] == expected
    assert [len(batch) for _, _, batch in found] == [fields[1] + 12 for _, fields, _ in found]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=8), data=st.data())
def test_a_cut_file_breaks_where_the_last_whole_batch_ends(
    tmp_path: Path, sizes: list[int], data: st.DataObject
) -> None:
    file, expected, end = write(tmp_path / "f", sizes)
    size = data.draw(st.integers(1, end - 1))
    starts = [position for position, _ in expected] + [end]
    whole = max(start for start in starts if start <= size)
    for steps in (scan, scan_verified, walk):
        if whole == size:
            list(steps(file, 0, size))
            continue
        with pytest.raises(BrokenBatch) as caught:
            list(steps(file, 0, size))
        assert caught.value.position == whole


def test_a_file_shorter_than_believed_breaks(tmp_path: Path) -> None:
    file, _, end = write(tmp_path / "f", [10, 10])
    for steps in (scan, scan_verified, walk):
        with pytest.raises(BrokenBatch):
            list(steps(file, 0, end + 100))


@pytest.mark.parametrize("length", [-100, 0, 48, 2**31 - 1])
def test_impossible_lengths_break(tmp_path: Path, length: int) -> None:
    file, expected, end = write(tmp_path / "f", [10, 10, 10])
    content = bytearray((tmp_path / "f").read_bytes())
    position = expected[1][0]
    content[position + 8 : position + 12] = length.to_bytes(4, "big", signed=True)
    (tmp_path / "f").write_bytes(content)
    for steps in (scan, scan_verified, walk):
        with pytest.raises(BrokenBatch) as caught:
            list(steps(file, 0, end))
        assert caught.value.position == position


def test_a_wrong_checksum_breaks_where_it_matters(tmp_path: Path) -> None:
    file, expected, end = write(tmp_path / "f", [10, 10, 10])
    content = bytearray((tmp_path / "f").read_bytes())
    content[expected[2][0] - 1] ^= 1
    (tmp_path / "f").write_bytes(content)
    assert len(list(scan(file, 0, end))) == 3
    with pytest.raises(BrokenBatch, match="checksum") as caught:
        list(scan_verified(file, 0, end))
    assert caught.value.position == expected[1][0]
