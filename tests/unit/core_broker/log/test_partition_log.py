import gc
import os
import resource
import threading
from pathlib import Path

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.log.segment_chain import LogSlice
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import (
    BatchHeader,
    Record,
    build_batch,
    end_transaction_marker,
    parse_batches,
    read_records,
)
from core_broker.service.clock import ManualClock
from core_broker.settings.topic import TopicSettings

NOW = 1_700_000_000_000
ALL = 1 << 30


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


def open_log(
    path: Path, clock: ManualClock, *, clean: bool = False, start_offset: int = 0, **changes: object
) -> PartitionLog:
    settings = TopicSettings(**changes)  # type: ignore[arg-type]  # settings by name
    return PartitionLog.open(
        path / "t-0", topic="t", partition=0, settings=settings, clock=clock, clean=clean, start_offset=start_offset
    )


def batch(count: int = 1, size: int = 10, timestamp: int = NOW, **changes: object) -> bytearray:
    records = [Record(timestamp=timestamp, key=b"k", value=b"v" * size) for _ in range(count)]
    return build_batch(records, **changes)  # type: ignore[arg-type]  # passed on by name


def produced(sequence: int, *, producer_id: int = 7, epoch: int = 0, transactional: bool = False) -> bytearray:
    return batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional)


def marker(producer_id: int, *, commit: bool) -> bytearray:
    return end_transaction_marker(producer_id, 0, commit=commit, coordinator_epoch=0, timestamp_ms=NOW)


def headers_of(found: LogSlice | None) -> list[BatchHeader]:
    assert found is not None
    return parse_batches(found.file.read(found.position, found.length))


def fill(log: PartitionLog, count: int, size: int = 10) -> None:
    for _ in range(count):
        log.append(batch(size=size), leader_epoch=0)


# -- appending ---------------------------------------------------------------------------------------------------------


def test_offsets_are_given_one_after_the_other(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    first = log.append(batch(3), leader_epoch=4)
    second = log.append(memoryview(batch(2)), leader_epoch=4)
    assert (first.first_offset, first.last_offset, first.timestamp_ms) == (0, 2, -1)
    assert (second.first_offset, second.last_offset, second.duplicate) == (3, 4, False)
    assert log.end_offset == 5
    assert [(h.base_offset, h.last_offset, h.leader_epoch) for h in headers_of(log.read(0, ALL, upper_offset=5))] == [
        (0, 2, 4),
        (3, 4, 4),
    ]


def test_several_batches_in_one_append_follow_each_other(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    result = log.append(batch(2) + batch(3), leader_epoch=0)
    assert (result.first_offset, result.last_offset) == (0, 4)
    assert [h.base_offset for h in headers_of(log.read(0, ALL, upper_offset=5))] == [0, 2]


def test_the_bytes_of_the_records_are_stored_as_they_came(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    sent = batch(3, codec=Codec.LZ4)
    records = bytes(sent[16:])
    log.append(sent, leader_epoch=1)
    assert (tmp_path / "t-0" / "00000000000000000000.log").read_bytes()[16:] == records


def test_log_append_time_is_answered_and_stored(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, message_timestamp_type="LogAppendTime")
    assert log.append(batch(2, timestamp=5), leader_epoch=0).timestamp_ms == NOW
    [(header, view)] = log.read_batches(0, 2)
    assert [record.timestamp for record in read_records(view, header)] == [NOW, NOW]


def test_duplicate_batch_is_answered_with_its_original_offset(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 3)
    first = log.append(produced(0), leader_epoch=0)
    log.append(produced(1), leader_epoch=0)
    again = log.append(produced(0), leader_epoch=0)
    assert (again.first_offset, again.last_offset, again.duplicate) == (first.first_offset, first.last_offset, True)
    assert log.end_offset == 5


def test_a_gap_in_the_sequence_is_refused_and_changes_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append(produced(0), leader_epoch=0)
    with pytest.raises(BrokerError) as caught:
        log.append(produced(2), leader_epoch=0)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (log.end_offset, log.size_bytes) == (1, len(produced(0)))


def test_a_marker_of_transaction_v2_must_be_newer_than_the_records(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append(produced(0, transactional=True), leader_epoch=0)

    def marker_of(epoch: int) -> bytearray:
        return end_transaction_marker(7, epoch, commit=True, coordinator_epoch=0, timestamp_ms=NOW)

    with pytest.raises(BrokerError) as caught:
        log.append(marker_of(0), leader_epoch=0, origin=Origin.COORDINATOR, transaction_version=2)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.first_unstable_offset == 0
    log.append(marker_of(1), leader_epoch=0, origin=Origin.COORDINATOR, transaction_version=2)
    assert log.first_unstable_offset is None


def test_open_and_aborted_transactions_are_known(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2)
    unstable = [log.first_unstable_offset]
    log.append(produced(0, transactional=True), leader_epoch=0)
    unstable.append(log.first_unstable_offset)
    log.append(marker(7, commit=False), leader_epoch=0, origin=Origin.COORDINATOR)
    unstable.append(log.first_unstable_offset)
    assert unstable == [None, 2, None]
    assert log.aborted_transactions(0, 10) == [(7, 2)]
    assert log.aborted_transactions(4, 10) == []
    assert log.aborted_transactions(0, 2) == []


def test_a_committed_transaction_is_not_aborted(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append(produced(0, transactional=True), leader_epoch=0)
    log.append(marker(7, commit=True), leader_epoch=0, origin=Origin.COORDINATOR)
    assert log.aborted_transactions(0, 10) == []


def test_aborts_are_found_in_later_segments(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append(produced(0, transactional=True), leader_epoch=0)
    log.roll()
    fill(log, 1)
    log.roll()
    log.append(marker(7, commit=False), leader_epoch=0, origin=Origin.COORDINATOR)
    assert log.aborted_transactions(0, 1) == [(7, 0)]


def test_leader_epochs_are_noted_where_they_begin(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    for epoch in (0, 0, 3, 3, 7):
        log.append(batch(), leader_epoch=epoch)
    assert log.epochs.entries == ((0, 0), (3, 2), (7, 4))


def test_a_follower_takes_offsets_and_epochs_as_they_are(tmp_path: Path, clock: ManualClock) -> None:
    leader, follower = open_log(tmp_path / "leader", clock), open_log(tmp_path / "follower", clock)
    for sequence, epoch in enumerate((0, 1, 1, 5)):
        leader.append(produced(sequence), leader_epoch=epoch)
    found = leader.read(0, ALL, upper_offset=4)
    assert found is not None
    follower.append_as_follower(bytearray(found.file.read(found.position, found.length)))
    assert follower.end_offset == 4
    assert follower.epochs.entries == leader.epochs.entries
    assert list(follower.producers.active_producers()) == list(leader.producers.active_producers())


@pytest.mark.parametrize("base_offset", [0, 2])
def test_a_follower_refuses_what_it_has_already(tmp_path: Path, clock: ManualClock, base_offset: int) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 3)
    with pytest.raises(BrokerError) as caught:
        log.append_as_follower(batch(base_offset=base_offset))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_refuses_a_wrong_checksum(tmp_path: Path, clock: ManualClock) -> None:
    damaged = batch()
    damaged[-1] ^= 1
    with pytest.raises(BrokerError) as caught:
        open_log(tmp_path, clock).append_as_follower(damaged)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_follower_may_meet_a_gap_of_any_width(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append_as_follower(batch(base_offset=2**40))
    assert log.end_offset == 2**40 + 1
    assert [segment.base_offset for segment in log.segments] == [2**40]


def test_kafka_10778_a_full_disk_refuses_appends_until_the_log_is_opened_again(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2)
    os.dup2(os.open("/dev/full", os.O_RDWR), log.active_segment.file.fd)
    with pytest.raises(BrokerError) as caught:
        fill(log, 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(BrokerError) as caught:
        fill(log, 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert caplog.messages == ["log cannot be written, rejecting appends"]
    again = open_log(tmp_path, clock)
    fill(again, 1)
    assert again.end_offset == 3


def test_a_half_written_batch_is_cut_off_again(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2)
    path, size = log.active_segment.path, log.size_bytes
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        with pytest.raises(BrokerError) as caught:
            log.append(batch() + batch(), leader_epoch=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert path.stat().st_size == log.size_bytes == size
    assert log.end_offset == 2
    assert open_log(tmp_path, clock).end_offset == 2


def test_a_failed_flush_refuses_appends(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 1)
    reader, writer = os.pipe()
    os.dup2(writer, log.active_segment.file.fd)  # a pipe cannot be forced to disk
    try:
        with pytest.raises(BrokerError) as flushing:
            log.flush()
        with pytest.raises(BrokerError) as appending:
            fill(log, 1)
    finally:
        os.close(reader)
        os.close(writer)
    assert flushing.value.code is appending.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0


def test_a_closed_log_refuses_appends(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.close()
    with pytest.raises(BrokerError) as caught:
        fill(log, 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


# -- rolling -----------------------------------------------------------------------------------------------------------


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_is_rolled_before_it_grows_too_large(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=3 * len(batch()))
    fill(log, 7)
    assert bases(log) == [0, 3, 6]
    names = {path.name for path in (tmp_path / "t-0").iterdir()}
    assert {"00000000000000000003.log", "00000000000000000003.timeindex", "00000000000000000003.snapshot"} <= names


def test_a_closed_segment_has_both_indexes_even_when_one_is_empty(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 1)
    log.close()
    sizes = [(tmp_path / "t-0" / f"{0:020}.{suffix}").stat().st_size for suffix in ("index", "timeindex")]
    assert sizes == [0, 12]


def test_a_segment_is_rolled_by_the_time_of_its_first_record(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_ms=1000, message_timestamp_after_max_ms=10**9)
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW + 1500):
        log.append(batch(timestamp=timestamp), leader_epoch=0)
    assert bases(log) == [0, 2]


def test_the_age_of_a_segment_survives_opening_again(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_ms=1000)
    fill(log, 1)
    log.close()
    log = open_log(tmp_path, clock, segment_ms=1000, clean=True)
    log.append(batch(timestamp=NOW + 1001), leader_epoch=0)
    assert bases(log) == [0, 1]


def test_a_segment_is_rolled_when_its_index_is_full(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_index_bytes=24, index_interval_bytes=0)
    fill(log, 9)
    assert bases(log) == [0, 4, 8]


def test_rolling_an_empty_segment_does_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.roll()
    fill(log, 1)
    log.roll()
    log.roll()
    assert bases(log) == [0, 1]


def test_new_settings_hold_for_what_comes_next(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 4)
    log.configure(TopicSettings(segment_bytes=2 * len(batch()), max_message_bytes=100))
    fill(log, 3)
    assert bases(log) == [0, 4, 6]
    with pytest.raises(BrokerError) as caught:
        log.append(batch(size=100), leader_epoch=0)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_reserved_space_is_given_back_when_a_segment_is_closed(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 5, size=500_000)
    path = log.active_segment.path
    assert path.stat().st_size == log.size_bytes
    assert path.stat().st_blocks * 512 > log.size_bytes + 200_000
    log.roll()
    assert path.stat().st_blocks * 512 < log.size_bytes + 10_000


def test_the_whole_segment_is_reserved_with_its_first_batch_when_asked_for(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, preallocate=True, segment_bytes=3_000_000)
    fill(log, 1)
    path = log.active_segment.path
    assert path.stat().st_size == log.size_bytes
    assert path.stat().st_blocks * 512 >= 3_000_000
    log.roll()
    assert path.stat().st_blocks * 512 < log.size_bytes + 10_000


def test_reserving_whole_segments_begins_while_the_log_is_in_use(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 1)
    log.configure(TopicSettings(preallocate=True, segment_bytes=3_000_000))
    log.roll()
    fill(log, 1)
    assert log.active_segment.path.stat().st_blocks * 512 >= 3_000_000


# -- reading -----------------------------------------------------------------------------------------------------------


def test_reading_at_the_end_gives_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2)
    assert log.read(2, ALL, upper_offset=2) is None


def test_reading_above_the_upper_offset_gives_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 5)
    assert log.read(3, ALL, upper_offset=3) is None
    assert [h.base_offset for h in headers_of(log.read(1, ALL, upper_offset=3))] == [1, 2]


def test_a_batch_that_reaches_over_the_upper_offset_is_left_out(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append(batch(2), leader_epoch=0)
    log.append(batch(5), leader_epoch=0)
    assert [h.last_offset for h in headers_of(log.read(0, ALL, upper_offset=4))] == [1]
    assert log.read(2, ALL, upper_offset=4) is None


def test_only_whole_batches_within_max_bytes_are_read(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 100)
    size = len(batch())
    found = log.read(10, 5 * size + 3, upper_offset=100)
    assert [h.base_offset for h in headers_of(found)] == [10, 11, 12, 13, 14]
    assert found is not None
    assert found.next_offset == 15


def test_a_first_batch_beyond_max_bytes_is_read_whole(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2, size=5000)
    assert [h.base_offset for h in headers_of(log.read(0, 10, upper_offset=2))] == [0]
    assert log.read(0, 10, upper_offset=2, at_least_one=False) is None


def test_a_batch_that_does_not_fit_is_not_skipped_for_a_smaller_one_in_the_next_segment(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = open_log(tmp_path, clock, segment_bytes=6_000)
    fill(log, 1, size=5_000)
    fill(log, 1, size=1_000)
    assert log.read(0, 2_000, upper_offset=2, at_least_one=False) is None
    assert [h.base_offset for h in headers_of(log.read(1, 2_000, upper_offset=2, at_least_one=False))] == [1]


def test_a_slice_stays_within_one_segment(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=3 * len(batch()))
    fill(log, 7)
    found = log.read(1, ALL, upper_offset=7)
    assert [h.base_offset for h in headers_of(found)] == [1, 2]
    assert found is not None
    assert found.next_offset == 3


def test_a_slice_may_begin_before_the_offset_asked_for(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append(batch(10), leader_epoch=0)
    assert [h.base_offset for h in headers_of(log.read(7, ALL, upper_offset=10))] == [0]


@pytest.mark.parametrize("offset", [-1, 4])
def test_offsets_outside_the_log_are_refused(tmp_path: Path, clock: ManualClock, offset: int) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 3)
    with pytest.raises(BrokerError) as caught:
        log.read(offset, ALL, upper_offset=3)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_slice_can_be_read_after_its_segment_was_deleted(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 3)
    found = log.read(0, ALL, upper_offset=3)
    log.roll()
    log.delete_records_before(3)
    log.delete_old_segments(high_watermark=3)
    log.remove_deleted_files(at_once=True)
    gc.collect()
    assert [h.base_offset for h in headers_of(found)] == [0, 1, 2]


def test_every_offset_is_found_whatever_was_read_before(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=4000, index_interval_bytes=200)
    fill(log, 200)
    for offset in (*range(0, 200, 7), *range(199, 0, -13), *range(0, 200, 7)):
        assert headers_of(log.read(offset, 1, upper_offset=200))[0].base_offset == offset


def test_batches_are_iterated_over_segments(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=3 * len(batch()))
    fill(log, 10)
    assert [header.base_offset for header, _ in log.read_batches(2, 8)] == [2, 3, 4, 5, 6, 7]


def test_a_damaged_index_is_built_again_when_it_misleads(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, clock, index_interval_bytes=100)
    fill(log, 100)
    log.close()
    index = tmp_path / "t-0" / "00000000000000000000.index"
    content = bytearray(index.read_bytes())
    content[8 * 10 + 7] ^= 0x05
    index.write_bytes(content)
    log = open_log(tmp_path, clock, clean=True, index_interval_bytes=100)
    for offset in reversed(range(100)):
        assert headers_of(log.read(offset, 1, upper_offset=100))[0].base_offset == offset
    assert caplog.messages == ["index rebuilt"]


def test_a_damaged_index_does_not_undo_an_append(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, clock, index_interval_bytes=100)
    fill(log, 100)
    log.close()
    for suffix in ("index", "timeindex"):
        path = tmp_path / "t-0" / f"00000000000000000000.{suffix}"
        path.write_bytes(b"\x7f" + path.read_bytes()[1:])
    log = open_log(tmp_path, clock, clean=True, index_interval_bytes=100)
    for offset in range(100, 120):
        assert log.append(batch(timestamp=NOW + offset), leader_epoch=0).first_offset == offset
    for offset in reversed(range(120)):
        assert headers_of(log.read(offset, 1, upper_offset=120))[0].base_offset == offset
    assert log.max_timestamp() == (NOW + 119, 119, 0)
    assert "index rebuilt" in caplog.messages


def test_a_segment_that_cannot_be_begun_is_tried_again(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=2 * len(batch()))
    fill(log, 2)
    (tmp_path / "t-0").rename(tmp_path / "away")
    with pytest.raises(BrokerError) as caught:
        fill(log, 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    (tmp_path / "away").rename(tmp_path / "t-0")
    fill(log, 1)
    assert (log.end_offset, bases(log)) == (3, [0, 2])


def test_a_damaged_batch_is_told_not_sent(tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 5)
    with log.active_segment.path.open("r+b") as file:
        file.seek(2 * len(batch()) + 16)
        file.write(b"\x63")
    for _ in range(3):
        with pytest.raises(BrokerError) as caught:
            log.read(3, 10, upper_offset=5)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert caplog.messages.count("index rebuilt") == 1


# -- deleting and truncating -------------------------------------------------------------------------------------------


def test_deleted_records_are_out_of_range_at_once_and_their_files_go_later(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=3 * len(batch()))
    fill(log, 8)
    log.delete_records_before(4)
    with pytest.raises(BrokerError):
        log.read(3, ALL, upper_offset=8)
    assert bases(log) == [0, 3, 6]
    assert log.delete_old_segments(high_watermark=8) == 1
    assert bases(log) == [3, 6]
    assert (tmp_path / "t-0" / "00000000000000000000.log.deleted").exists()
    clock.advance(59_999)
    assert log.remove_deleted_files() == 0
    clock.advance(1)
    assert log.remove_deleted_files() == 1
    assert not list((tmp_path / "t-0").glob("00000000000000000000.*"))


def test_records_beyond_the_end_cannot_be_deleted(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2)
    with pytest.raises(BrokerError) as caught:
        log.delete_records_before(3)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_idle_log_is_emptied_by_age(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, retention_ms=1000)
    fill(log, 3)
    clock.advance(1001)
    assert log.delete_old_segments(high_watermark=3) == 1
    assert (log.start_offset, log.end_offset, bases(log)) == (3, 3, [3])
    assert log.append(batch(timestamp=clock.now_ms()), leader_epoch=0).first_offset == 3


def test_retention_by_size_drops_the_oldest_segments(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=2 * len(batch()), retention_bytes=4 * len(batch()))
    fill(log, 10)
    log.delete_old_segments(high_watermark=10)
    assert bases(log) == [6, 8]
    assert log.start_offset == 6


def test_kafka_12153_and_12520_truncation_drops_batches_epochs_and_producers(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = open_log(tmp_path, clock, segment_bytes=3 * len(batch()))
    for number in range(10):
        log.append(produced(number), leader_epoch=number // 4)
    assert log.truncate_to(5)
    assert (log.end_offset, bases(log)) == (5, [0, 3])
    assert log.epochs.entries == ((0, 0), (1, 4))
    appended = log.append(produced(5), leader_epoch=3)
    assert (appended.first_offset, appended.duplicate) == (5, False)


def test_truncation_beyond_the_end_does_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 2)
    assert not log.truncate_to(2)
    assert log.end_offset == 2


def test_a_log_can_start_over_at_any_offset(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 5)
    log.truncate_fully_and_start_at(1000)
    assert (log.start_offset, log.end_offset) == (1000, 1000)
    fill(log, 1)
    log.close()
    assert open_log(tmp_path, clock, clean=True).end_offset == 1001


# -- durability --------------------------------------------------------------------------------------------------------


def test_a_flush_moves_the_recovery_point(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 3)
    log.flush(2)
    assert log.recovery_point == 2
    log.flush()
    assert log.recovery_point == 3


def test_a_flush_is_due_after_flush_messages(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, flush_messages=3)
    fill(log, 2)
    assert not log.needs_flush
    fill(log, 1)
    assert log.flush_due_offset() == 3


def test_a_flush_is_due_after_flush_ms(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, flush_ms=1000)
    clock.advance(2000)
    assert not log.needs_flush
    fill(log, 1)
    log.flush()
    fill(log, 1)
    assert not log.needs_flush
    clock.advance(1000)
    assert log.needs_flush


def test_a_rolled_segment_is_due_for_a_flush_but_not_the_active_one(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    fill(log, 3)
    assert log.flush_due_offset() is None
    log.roll()
    fill(log, 1)
    assert log.flush_due_offset() == 3
    log.flush(3)
    assert log.flush_due_offset() is None


def test_appends_go_on_while_a_thread_flushes(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock, segment_bytes=20_000)
    stop = threading.Event()
    points: list[int] = []

    def flush_on_and_on() -> None:
        while not stop.is_set():
            log.flush()
            points.append(log.recovery_point)

    thread = threading.Thread(target=flush_on_and_on)
    thread.start()
    fill(log, 3000)
    stop.set()
    thread.join()
    assert points == sorted(points)
    log.flush()
    assert log.recovery_point == log.end_offset == 3000


def test_first_append_after_a_clean_stop_finds_nothing_wrong_with_the_indexes(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    before = open_log(tmp_path, clock)
    before.append(build_batch([Record(timestamp=1000, value=b"old")]), leader_epoch=0)
    before.close()
    after = open_log(tmp_path, clock, clean=True)
    after.append(build_batch([Record(timestamp=2000, value=b"new")]), leader_epoch=0)
    assert after.segments[-1].greatest_timestamp == (2000, 1)
    assert caplog.messages == []


def test_an_idle_partition_has_only_empty_files_and_kafka_misses_none(tmp_path: Path, clock: ManualClock) -> None:
    open_log(tmp_path, clock).close()
    found = {path.name: path.stat().st_size for path in (tmp_path / "t-0").iterdir()}
    assert found == {f"{0:020}.{suffix}": 0 for suffix in ("log", "index", "timeindex")}


def test_the_topic_id_is_written_once(tmp_path: Path, clock: ManualClock) -> None:
    def open_with(topic_id: bytes) -> PartitionLog:
        return PartitionLog.open(
            tmp_path / "t-0", topic="t", partition=0, settings=TopicSettings(), clock=clock, topic_id=topic_id
        )

    assert open_with(b"a" * 16).topic_id == b"a" * 16
    assert open_with(bytes(16)).topic_id == b"a" * 16


def test_follower_leaves_out_a_batch_that_the_leader_has_cut_off(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.append_as_follower(batch(base_offset=0) + batch(base_offset=1)[:-3])
    assert log.end_offset == 1


def test_follower_refuses_batches_newer_than_its_leader(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    newer = batch(base_offset=0)
    newer[12:16] = (8).to_bytes(4, "big")
    with pytest.raises(BrokerError) as refused:
        log.append_as_follower(newer, leader_epoch=7)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    log.append_as_follower(newer, leader_epoch=8)
    assert log.epochs.latest_epoch == 8


def test_empty_follower_may_begin_with_the_batch_that_contains_its_start(tmp_path: Path, clock: ManualClock) -> None:
    log = open_log(tmp_path, clock)
    log.truncate_fully_and_start_at(2)
    whole = build_batch([Record(timestamp=NOW, value=b"v")] * 4)
    with pytest.raises(BrokerError):
        log.append_as_follower(whole)
    log.append_as_follower(whole, may_begin_earlier=True)
    assert (log.start_offset, log.end_offset) == (0, 4)
    with pytest.raises(BrokerError):
        log.append_as_follower(whole, may_begin_earlier=True)
