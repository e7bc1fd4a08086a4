"""The independent checker finds what is wrong; a checker that never complains would prove nothing."""

import struct
from pathlib import Path

import pytest

from core_broker.protocol.records import Record, build_batch, end_transaction_marker, parse_header, stamp
from tests.support.log_check import PartitionReport, check_partition


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition of three batches, the last an abort marker, with sound indexes."""
    directory = tmp_path / "topic-0"
    directory.mkdir()
    batches = [
        build_batch([Record(-1, 1_000 + n, b"k", b"v") for n in range(3)], base_offset=0),
        build_batch(
            [Record(-1, 2_000, b"k", b"v")],
            base_offset=3,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        ),
        end_transaction_marker(7, 0, commit=False, coordinator_epoch=0, timestamp_ms=3_000),
    ]
    stamp(batches[2], parse_header(batches[2]), base_offset=4, leader_epoch=-1)
    (directory / "00000000000000000000.log").write_bytes(b"".join(batches))
    (directory / "00000000000000000000.index").write_bytes(struct.pack(">ii", 3, len(batches[0])) + bytes(16))
    (directory / "00000000000000000000.timeindex").write_bytes(struct.pack(">qi", 2_000, 3))
    (directory / "00000000000000000000.txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 3, 4, 5))
    return directory


def check_after(directory: Path, suffix: str, change: bytes | None, at: int = 0) -> PartitionReport:
    file = directory / f"00000000000000000000.{suffix}"
    data = bytearray(file.read_bytes())
    if change is None:
        del data[at:]
    else:
        data[at : at + len(change)] = change
    file.write_bytes(data)
    return check_partition(directory)


def test_a_sound_partition_has_no_problems(partition: Path) -> None:
    report = check_partition(partition)
    assert report.problems == []
    assert (len(report.batches), report.index_entries, report.time_entries, report.aborted_entries) == (3, 1, 1, 1)


@pytest.mark.parametrize(
    "suffix,change,at,complaint",
    [
        ("log", b"\xff", 70, "wrong checksum"),
        ("log", None, 80, "no sound batch"),
        ("log", None, 20, "are no batch"),
        ("log", struct.pack(">q", -5), 0, "comes after"),
        ("index", struct.pack(">ii", 3, 5), 0, "where no batch begins"),
        ("index", struct.pack(">ii", 0, 0) + struct.pack(">ii", 99, 0), 0, "points to the batch of 0"),
        ("timeindex", struct.pack(">qi", 10, 3), 0, "whose entry says 10"),
        ("timeindex", struct.pack(">qi", 9_000, 77), 0, "the segment ends at 4"),
        ("txnindex", struct.pack(">hqqqq", 0, 8, 3, 4, 5), 0, "no abort marker of producer 8"),
        ("txnindex", None, 0, "has no entry"),
        ("txnindex", None, 20, "whole number of entries"),
    ],
)
def test_damage_is_found(partition: Path, suffix: str, change: bytes | None, at: int, complaint: str) -> None:
    report = check_after(partition, suffix, change, at)
    assert any(complaint in problem for problem in report.problems), report.problems


def test_a_repeated_sequence_is_found(partition: Path) -> None:
    twice = [
        build_batch(
            [Record(-1, 5_000, b"k", b"v")], base_offset=offset, producer_id=9, producer_epoch=0, base_sequence=0
        )
        for offset in (5, 6)
    ]
    log = partition / "00000000000000000000.log"
    log.write_bytes(log.read_bytes() + b"".join(twice))
    assert any("repeats sequence 0" in problem for problem in check_partition(partition).problems)
