from pathlib import Path

import pytest

from core_broker.log.partition_log import PartitionLog
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import Record, build_batch, write_crc
from core_broker.service.clock import ManualClock
from core_broker.settings.topic import TopicSettings

SETTINGS = TopicSettings(segment_bytes=2000, index_interval_bytes=100)


def open_log(path: Path, *, clean: bool = True) -> PartitionLog:
    return PartitionLog.open(
        path / "t-0", topic="t", partition=0, settings=SETTINGS, clock=ManualClock(10**9), clean=clean
    )


def append(log: PartitionLog, *timestamps: int, codec: Codec = Codec.NONE, epoch: int = 0) -> None:
    log.append(build_batch([Record(timestamp=t, value=b"v" * 50) for t in timestamps], codec=codec), leader_epoch=epoch)


@pytest.mark.parametrize("codec", list(Codec))
def test_the_record_inside_the_batch_is_found(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path)
    append(log, 10, 20, 30, codec=codec)
    append(log, 40, 50, codec=codec, epoch=3)
    assert log.offset_for_timestamp(15, upper_offset=5) == (20, 1, 0)
    assert log.offset_for_timestamp(41, upper_offset=5) == (50, 4, 3)
    assert log.offset_for_timestamp(0, upper_offset=5) == (10, 0, 0)
    assert log.offset_for_timestamp(51, upper_offset=5) is None


def test_the_first_of_unordered_timestamps_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for timestamp in (50, 20, 90, 30, 100):
        append(log, timestamp)
    assert [log.offset_for_timestamp(t, upper_offset=5) for t in (10, 51, 95)] == [(50, 0, 0), (90, 2, 0), (100, 4, 0)]


def test_nothing_above_the_upper_offset_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 10)
    append(log, 20)
    assert log.offset_for_timestamp(20, upper_offset=1) is None


def test_nothing_below_the_log_start_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 10, 11, 12)
    append(log, 5)
    log.delete_records_before(2)
    assert log.offset_for_timestamp(0, upper_offset=4) == (12, 2, 0)


def test_every_time_is_found_over_many_segments_and_after_opening_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(100):
        append(log, 1000 + number * 10)
    for _ in range(2):
        for number in range(100):
            assert log.offset_for_timestamp(995 + number * 10, upper_offset=100) == (1000 + number * 10, number, 0)
        log = reopened(log, tmp_path)


def reopened(log: PartitionLog, path: Path) -> PartitionLog:
    log.close()
    return open_log(path)


def test_the_greatest_timestamp_is_found_with_its_first_record(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.max_timestamp() is None
    for number in range(60):
        append(log, 100 + number % 30, 7, epoch=number // 40)
    assert log.max_timestamp() == (129, 58, 0)
    log = reopened(log, tmp_path)
    assert log.max_timestamp() == (129, 58, 0)


def test_records_without_timestamps_have_no_greatest(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, -1)
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0, upper_offset=1) is None


def test_a_batch_whose_records_cannot_be_read_is_answered_as_a_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    append(log, 5)
    hostile = build_batch([Record(timestamp=70), Record(timestamp=80)], codec=Codec.GZIP)
    hostile[-6] ^= 0xFF
    write_crc(hostile)
    log.append(hostile, leader_epoch=2)
    assert log.offset_for_timestamp(60, upper_offset=9) == (80, 1, 2)
    assert log.max_timestamp() == (80, 1, 2)
    assert "records of a batch cannot be read" in caplog.messages


def test_a_header_that_promises_a_time_no_record_has_leads_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    lying = build_batch([Record(timestamp=10)])
    lying[35:43] = (500).to_bytes(8, "big")
    write_crc(lying)
    log.append(lying, leader_epoch=0)
    append(log, 400)
    assert log.offset_for_timestamp(300, upper_offset=2) == (400, 1, 0)


def test_a_damaged_time_index_is_built_again_when_it_misleads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    for number in range(15):
        append(log, 1000 + number * 10)
    log.close()
    path = tmp_path / "t-0" / "00000000000000000000.timeindex"
    content = bytearray(path.read_bytes())
    content[12 * 3 + 7] ^= 0x02
    path.write_bytes(content)
    log = open_log(tmp_path)
    for number in range(15):
        assert log.offset_for_timestamp(995 + number * 10, upper_offset=15) == (1000 + number * 10, number, 0)
    assert caplog.messages == ["index rebuilt"]


@pytest.mark.parametrize("kept", [0, 12, 24])
def test_a_time_index_that_lost_its_end_does_not_hide_younger_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: int
) -> None:
    log = open_log(tmp_path)
    for number in range(15):
        append(log, 1000 + number * 10)
    log.close()
    path = tmp_path / "t-0" / "00000000000000000000.timeindex"
    path.write_bytes(path.read_bytes()[:kept])
    log = open_log(tmp_path)
    for number in range(15):
        assert log.offset_for_timestamp(995 + number * 10, upper_offset=15) == (1000 + number * 10, number, 0)
    assert caplog.messages == ["index rebuilt"]
