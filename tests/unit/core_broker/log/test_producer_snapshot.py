"""Snapshot files: Kafka's bytes, and damage of every kind found."""

import struct
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from core_broker.log.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotEntry,
    decode_snapshot,
    delete_snapshots_above,
    delete_stray_snapshots,
    encode_snapshot,
    newest_valid_snapshot,
    snapshot_offsets,
    snapshot_path,
    write_snapshot,
)

ENTRY = SnapshotEntry(
    producer_id=1000,
    epoch=3,
    last_sequence=41,
    last_offset=99,
    offset_delta=4,
    timestamp=1_700_000_000_000,
    coordinator_epoch=2,
    transaction_first_offset=-1,
)


def test_snapshot_has_the_layout_of_kafka() -> None:
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 1000, 3, 41, 99, 4, 1_700_000_000_000, 2, -1)
    assert encode_snapshot([ENTRY]) == struct.pack(">hI", 1, crc32c(body)) + body


def test_snapshot_is_read_as_it_was_written() -> None:
    assert decode_snapshot(encode_snapshot([ENTRY, ENTRY])) == [ENTRY, ENTRY]


@given(position=st.integers(0), bit=st.integers(0, 7))
def test_flipped_bit_is_detected(position: int, bit: int) -> None:
    data = bytearray(encode_snapshot([ENTRY, ENTRY]))
    data[position % len(data)] ^= 1 << bit
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(data))


@given(length=st.integers(0, 55))
def test_cut_snapshot_is_detected(length: int) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(encode_snapshot([ENTRY])[:length])


def test_count_that_does_not_fit_the_file_is_refused_before_memory_is_taken() -> None:
    body = struct.pack(">i", 2**31 - 1)
    with pytest.raises(CorruptSnapshotError, match="do not fit"):
        decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)


def test_corrupt_newest_snapshot_is_deleted_and_the_older_one_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_snapshot(tmp_path, 10, [ENTRY])
    write_snapshot(tmp_path, 20, [ENTRY, ENTRY]).write_bytes(b"garbage of some length")
    assert newest_valid_snapshot(tmp_path, 25) == (10, [ENTRY])
    assert snapshot_offsets(tmp_path) == [10]
    assert "corrupt producer snapshot deleted" in caplog.messages


def test_snapshot_above_the_log_end_is_deleted(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 10, [ENTRY])
    write_snapshot(tmp_path, 20, [])
    assert newest_valid_snapshot(tmp_path, 19) == (10, [ENTRY])
    assert snapshot_offsets(tmp_path) == [10]


def test_snapshot_at_the_very_end_is_taken(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 10, [])
    write_snapshot(tmp_path, 20, [ENTRY])
    assert newest_valid_snapshot(tmp_path, 20) == (20, [ENTRY])


def test_corrupt_snapshot_at_the_very_end_is_told_and_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_snapshot(tmp_path, 10, [ENTRY])
    write_snapshot(tmp_path, 20, []).write_bytes(b"")
    assert newest_valid_snapshot(tmp_path, 20) == (10, [ENTRY])
    assert "corrupt producer snapshot deleted" in caplog.messages


def test_no_snapshot_means_replay_from_the_beginning(tmp_path: Path) -> None:
    assert newest_valid_snapshot(tmp_path, 100) == (0, [])


def test_truncation_deletes_later_snapshots(tmp_path: Path) -> None:
    for offset in (10, 20, 30):
        write_snapshot(tmp_path, offset, [], sync=True)
    delete_snapshots_above(tmp_path, 20)
    assert snapshot_offsets(tmp_path) == [10, 20]


def test_stray_snapshots_are_deleted_but_segment_bases_and_the_newest_are_kept(tmp_path: Path) -> None:
    for offset in (5, 10, 15, 20, 25):
        write_snapshot(tmp_path, offset, [])
    leftover = snapshot_path(tmp_path, 30).with_suffix(".snapshot.tmp")
    leftover.touch()
    delete_stray_snapshots(tmp_path, [10, 20])
    assert snapshot_offsets(tmp_path) == [10, 20, 25]
    assert not leftover.exists()
