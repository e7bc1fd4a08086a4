import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.protocol.records import Record, build_batch, end_transaction_marker, read_records
from core_broker.service.clock import ManualClock
from core_broker.settings.topic import TopicSettings

NOW = 1_700_000_000_000
SETTINGS = TopicSettings(segment_bytes=1000, index_interval_bytes=100)
RECORDS = 40


def open_log(path: Path, *, clean: bool = False, recovery_point: int = 0, start_offset: int = 0) -> PartitionLog:
    return PartitionLog.open(
        path / "t-0",
        topic="t",
        partition=0,
        settings=SETTINGS,
        clock=ManualClock(NOW),
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
    )


def batch(number: int, **changes: object) -> bytearray:
    record = Record(timestamp=NOW + number, value=b"value %d" % number)
    return build_batch([record], **changes)  # type: ignore[arg-type]  # passed on by name


def write(path: Path) -> PartitionLog:
    """Forty records in several segments: two epochs, an idempotent producer, a transaction aborted in the third."""
    log = open_log(path)
    for number in range(RECORDS):
        if number == 5:
            changes: dict[str, object] = {"producer_id": 9, "is_transactional": True}
        else:
            changes = {"producer_id": 7} if number % 2 else {}
        if changes:
            sequence = number // 2 if number > 5 else min(number // 2, 1)
            changes |= {"producer_epoch": 0, "base_sequence": 0 if number == 5 else sequence - (number > 5)}
        if number == 25:
            marker = end_transaction_marker(9, 0, commit=False, coordinator_epoch=0, timestamp_ms=NOW + number)
            log.append(marker, leader_epoch=1, origin=Origin.COORDINATOR)
        else:
            log.append(batch(number, **changes), leader_epoch=0 if number < 20 else 1, origin=Origin.COORDINATOR)
    assert len(log.segments) >= 4
    return log


def picture(log: PartitionLog) -> dict[str, object]:
    """Everything that must be the same however the log was opened."""
    batches = [(header.base_offset, read_records(view, header)) for header, view in log.read_batches(0, 1 << 40)]
    return {
        "batches": batches,
        "offsets": (log.start_offset, log.end_offset),
        "epochs": log.epochs.entries,
        "producers": sorted(log.producers.active_producers(), key=lambda producer: producer.producer_id),
        "aborted": log.aborted_transactions(0, 1 << 40),
        "times": [log.offset_for_timestamp(NOW + number, upper_offset=RECORDS) for number in range(RECORDS)],
        "indexes": [
            (segment.offsets.count, segment.offsets.last(), segment.greatest_timestamp) for segment in log.segments
        ],
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A log that was closed in order, to be copied, and what is in it."""
    path = tmp_path_factory.mktemp("written")
    log = write(path)
    seen = picture(log)
    log.close()
    return path, seen


@pytest.fixture
def copy(written: tuple[Path, dict[str, object]], tmp_path: Path) -> Path:
    shutil.copytree(written[0] / "t-0", tmp_path / "t-0")
    return tmp_path


@pytest.fixture
def expected(written: tuple[Path, dict[str, object]]) -> dict[str, object]:
    return written[1]


def files_with_content(directory: Path, suffix: str) -> list[Path]:
    return [path for path in (directory / "t-0").glob(f"*{suffix}") if path.stat().st_size]


def newest(directory: Path, suffix: str) -> Path:
    return max(files_with_content(directory, suffix))


def test_a_clean_log_is_opened_as_it_was(
    copy: Path, expected: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    assert picture(open_log(copy, clean=True)) == expected
    assert caplog.messages == []


@pytest.mark.parametrize("recovery_point", [0, 1, 20, RECORDS - 1, RECORDS, RECORDS + 100])
def test_an_unclean_log_is_recovered_from_any_recovery_point(
    copy: Path, expected: dict[str, object], recovery_point: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert picture(open_log(copy, clean=False, recovery_point=recovery_point)) == expected
    assert caplog.messages == []


def test_kafka_10432_epoch_0_is_recovered_from_the_batches(tmp_path: Path) -> None:
    log = write(tmp_path)
    assert log.epochs.entries[0] == (0, 0)
    log.epochs.clear()
    del log
    assert open_log(tmp_path).epochs.entries[0] == (0, 0)


def test_a_log_that_was_killed_is_recovered(tmp_path: Path) -> None:
    log = write(tmp_path)
    seen = picture(log)
    del log
    assert picture(open_log(tmp_path)) == seen


Damage = Callable[[Path], None]


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80
    path.write_bytes(content)


def append_zeros(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(5))


@pytest.mark.parametrize("damage", [cut_in_half, empty, remove, overwrite, flip, append_zeros])
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("which", [min, max])
def test_damaged_helper_files_are_survived_after_a_kill(
    copy: Path, expected: dict[str, object], suffix: str, damage: Damage, which: Callable[[list[Path]], Path]
) -> None:
    damage(which(files_with_content(copy, suffix)))
    # That a transaction index should exist cannot be told from anything else: it comes back where the log is read.
    recovery_point = 0 if suffix == ".txnindex" and damage in (remove, empty) else RECORDS
    assert picture(open_log(copy, clean=False, recovery_point=recovery_point)) == expected


@pytest.mark.parametrize("damage", [cut_in_half, overwrite, append_zeros])
@pytest.mark.parametrize(
    "suffix,message",
    [
        (".index", "index"),
        (".timeindex", "index"),
        (".txnindex", "corrupt transaction index rebuilt"),
        (".snapshot", "corrupt producer snapshot deleted"),
        ("leader-epoch-checkpoint", "corrupt leader epoch checkpoint rebuilt"),
    ],
)
def test_damaged_helper_files_are_survived_and_told_after_a_clean_stop(
    copy: Path,
    expected: dict[str, object],
    suffix: str,
    message: str,
    damage: Damage,
    caplog: pytest.LogCaptureFixture,
) -> None:
    damage(newest(copy, suffix))
    assert picture(open_log(copy, clean=True)) == expected
    assert any(message in line for line in caplog.messages)


def test_removed_snapshots_are_replayed_from_the_beginning(copy: Path, expected: dict[str, object]) -> None:
    for path in (copy / "t-0").glob("*.snapshot"):
        path.unlink()
    assert picture(open_log(copy, clean=True)) == expected


@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_tail_is_cut_and_told(copy: Path, clean: bool, caplog: pytest.LogCaptureFixture) -> None:
    tail = newest(copy, ".log")
    tail.write_bytes(tail.read_bytes()[:-3])
    log = open_log(copy, clean=clean, recovery_point=RECORDS)
    assert log.end_offset == RECORDS - 1
    assert "log truncated at the first invalid batch" in caplog.messages
    assert log.append(batch(0), leader_epoch=1).first_offset == RECORDS - 1


def test_garbage_after_the_last_batch_is_cut(copy: Path, expected: dict[str, object]) -> None:
    tail = newest(copy, ".log")
    tail.write_bytes(tail.read_bytes() + bytes(300))
    assert picture(open_log(copy, clean=True)) == expected


def test_segments_after_a_damaged_one_are_dropped(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    second = sorted((copy / "t-0").glob("*.log"))[1]
    base = int(second.stem)
    flip(second)
    log = open_log(copy, clean=False, recovery_point=0)
    assert base <= log.end_offset < base + 10
    assert log.segments[-1].base_offset == base
    assert [header.base_offset for header, _ in log.read_batches(0, 100)] == list(range(log.end_offset))
    assert "segment after the damage deleted" in caplog.messages
    assert log.append(batch(0), leader_epoch=2).first_offset == log.end_offset - 1


def test_segments_below_the_recovery_point_are_not_read(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip(min((copy / "t-0").glob("*.log")))
    assert open_log(copy, clean=False, recovery_point=RECORDS).end_offset == RECORDS
    assert caplog.messages == []


def test_batches_whose_offsets_go_back_are_cut(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(3):
        log.append(batch(number), leader_epoch=0)
    path = log.active_segment.path
    path.write_bytes(path.read_bytes() + batch(1, base_offset=1))
    assert open_log(tmp_path).end_offset == 3


def test_a_log_that_ends_before_its_start_is_begun_again_there(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(copy, clean=True, start_offset=1000)
    assert (log.start_offset, log.end_offset) == (1000, 1000)
    assert "log ends before its start offset and was emptied" in caplog.messages
    assert log.append(batch(0), leader_epoch=1).first_offset == 1000


def test_the_log_start_is_kept(copy: Path) -> None:
    log = open_log(copy, clean=True, start_offset=13)
    assert log.start_offset == 13
    assert log.epochs.entries == ((0, 13), (1, 20))


def test_an_active_segment_without_index_files_gets_empty_ones(tmp_path: Path) -> None:
    open_log(tmp_path, clean=True).close()
    for path in (tmp_path / "t-0").glob("*index"):
        path.unlink()
    open_log(tmp_path, clean=True)
    assert {path.name for path in (tmp_path / "t-0").glob("*index")} == {f"{0:020}.index", f"{0:020}.timeindex"}


def test_an_empty_directory_begins_at_the_start_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, clean=True, start_offset=55)
    assert (log.start_offset, log.end_offset) == (55, 55)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_any_flipped_byte_anywhere_is_survived(
    written: tuple[Path, dict[str, object]], tmp_path: Path, data: st.DataObject
) -> None:
    """What can be read afterwards is a beginning of what was written; a clean start may meet the damage later."""
    shutil.rmtree(tmp_path / "t-0", ignore_errors=True)
    shutil.copytree(written[0] / "t-0", tmp_path / "t-0")
    path = data.draw(st.sampled_from(sorted((tmp_path / "t-0").iterdir())))
    content = bytearray(path.read_bytes())
    if content:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    log = open_log(tmp_path, clean=False, recovery_point=0)
    batches = [(header.base_offset, read_records(view, header)) for header, view in log.read_batches(0, 1 << 62)]
    whole = written[1]["batches"]
    assert isinstance(whole, list)
    if ".log" in path.name:
        # Offsets stand outside the checksum: a flipped one may move its batch up, and then the next is cut.
        values = [[record.value for record in records] for _, records in batches]
        assert values == [[record.value for record in records] for _, records in whole][: len(values)]
    else:
        assert batches == whole
    log.append(batch(0), leader_epoch=9)
