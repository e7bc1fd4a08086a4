"""Compaction of whole logs: when it is due, what is left, and what a crash at any step leaves behind."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.log.cleaner import CleaningStoppedError
from core_broker.log.compaction import CleaningPlan, CleaningResult, Compactor, plan_cleaning
from core_broker.log.key_offsets import ENTRY_BYTES
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import (
    BatchHeader,
    Record,
    build_batch,
    check_crc,
    end_transaction_marker,
    parse_header,
    read_records,
)
from core_broker.service.clock import ManualClock
from core_broker.settings import TopicSettings

NOW_MS = 1_700_000_000_000
COMPACT = frozenset({"compact"})
SETTINGS = TopicSettings(
    cleanup_policy=COMPACT,
    segment_bytes=1 << 20,
    index_interval_bytes=100,
    delete_retention_ms=1000,
    min_cleanable_dirty_ratio=0.0,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now_ms=NOW_MS)


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def open_log(
    directory: Path, clock: ManualClock, topic_settings: TopicSettings = SETTINGS, *, clean: bool = False
) -> PartitionLog:
    return PartitionLog.open(directory, topic="orders", partition=0, settings=topic_settings, clock=clock, clean=clean)


def write(
    partition_log: PartitionLog, *pairs: tuple[str, str | None], at_ms: int = NOW_MS, codec: Codec = Codec.NONE
) -> None:
    records = [Record(-1, at_ms, key.encode(), None if value is None else value.encode()) for key, value in pairs]
    partition_log.append(build_batch(records, codec=codec), leader_epoch=0)


def contents(partition_log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """Every data record as (offset, key, value); checks the batches on the way."""
    return [
        (record.offset, record.key.decode(), None if record.value is None else record.value.decode())
        for header, records in batches(partition_log)
        if not header.is_control
        for record in records
        if record.key is not None
    ]


def batches(partition_log: PartitionLog) -> list[tuple[BatchHeader, list[Record]]]:
    found = []
    for header, batch in partition_log.read_batches(partition_log.start_offset, partition_log.end_offset):
        assert check_crc(batch, header)
        found.append((header, read_records(batch, header)))
    return found


def plan(partition_log: PartitionLog, clock: ManualClock, *, checkpoint: int | None = None) -> CleaningPlan:
    return plan_cleaning(
        partition_log, checkpoint=checkpoint, high_watermark=partition_log.end_offset, now_ms=clock.now_ms()
    )


def clean(
    partition_log: PartitionLog,
    clock: ManualClock,
    executor: ThreadPoolExecutor,
    *,
    checkpoint: int | None = None,
    buffer_bytes: int = 1 << 20,
) -> CleaningResult | None:
    compactor = Compactor(clock, executor, buffer_bytes=buffer_bytes)
    return asyncio.run(compactor.clean(partition_log, plan(partition_log, clock, checkpoint=checkpoint)))


# -- when --------------------------------------------------------------------------------------------------------------


def test_only_closed_segments_can_be_cleaned(tmp_path: Path, clock: ManualClock) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"))
    assert plan(partition_log, clock).dirty_bytes == 0
    partition_log.roll()
    found = plan(partition_log, clock)
    assert (found.first_dirty_offset, found.end_offset, found.clean_bytes) == (0, 1, 0)
    assert found.dirty_bytes == partition_log.size_bytes
    assert found.is_due(SETTINGS)


def test_log_is_due_by_its_dirty_ratio(tmp_path: Path, clock: ManualClock) -> None:
    partition_log = open_log(tmp_path, clock)
    for _ in range(4):
        write(partition_log, ("a", "1"))
        partition_log.roll()
    found = plan(partition_log, clock, checkpoint=3)
    assert found.dirty_ratio == 0.25
    assert found.is_due(TopicSettings(min_cleanable_dirty_ratio=0.2))
    assert not found.is_due(TopicSettings(min_cleanable_dirty_ratio=0.25))
    assert not plan(partition_log, clock, checkpoint=4).is_due(TopicSettings(min_cleanable_dirty_ratio=0.0))


@pytest.mark.parametrize("checkpoint", [5, 1])
def test_checkpoint_outside_the_log_is_not_believed(tmp_path: Path, clock: ManualClock, checkpoint: int) -> None:
    partition_log = open_log(tmp_path, clock)
    for _ in range(4):
        write(partition_log, ("a", "1"))
        partition_log.roll()
    partition_log.delete_records_before(2)
    assert plan(partition_log, clock, checkpoint=checkpoint).first_dirty_offset == 2


def test_nothing_from_an_open_transaction_on_is_cleaned(tmp_path: Path, clock: ManualClock) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"))
    partition_log.roll()
    write(partition_log, ("a", "2"))
    append_transactional(partition_log, 7, 0, ("a", "3"))
    partition_log.roll()
    assert plan(partition_log, clock).end_offset == 1


def test_nothing_above_the_high_watermark_is_cleaned(tmp_path: Path, clock: ManualClock) -> None:
    partition_log = open_log(tmp_path, clock)
    for _ in range(3):
        write(partition_log, ("a", "1"))
        partition_log.roll()
    found = plan_cleaning(partition_log, checkpoint=None, high_watermark=2, now_ms=NOW_MS)
    assert found.end_offset == 2


def test_records_younger_than_the_minimum_lag_are_left_alone(tmp_path: Path, clock: ManualClock) -> None:
    partition_log = open_log(tmp_path, clock, TopicSettings(cleanup_policy=COMPACT, min_compaction_lag_ms=1000))
    for age_ms in (3000, 2000, 500):
        write(partition_log, ("a", "1"), at_ms=NOW_MS - age_ms)
        partition_log.roll()
    assert plan(partition_log, clock).end_offset == 2


def test_dirty_record_older_than_the_maximum_lag_makes_the_log_due(tmp_path: Path, clock: ManualClock) -> None:
    lazy = TopicSettings(cleanup_policy=COMPACT, max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1.0)
    partition_log = open_log(tmp_path, clock, lazy)
    write(partition_log, ("a", "1"))
    partition_log.roll()
    assert not plan(partition_log, clock).is_due(lazy)
    clock.advance(1001)
    assert plan(partition_log, clock).is_due(lazy)


# -- what is left ------------------------------------------------------------------------------------------------------


def test_newest_value_of_each_key_is_left_with_its_offset(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), ("b", "1"), ("c", "1"))
    write(partition_log, ("a", "2"), ("b", "2"))
    partition_log.roll()
    write(partition_log, ("a", "3"))
    partition_log.roll()
    write(partition_log, ("c", "active"))
    result = clean(partition_log, clock, executor)
    assert result is not None
    assert result.cleaned_to_offset == 6
    assert result.bytes_after < result.bytes_before
    assert contents(partition_log) == [(2, "c", "1"), (4, "b", "2"), (5, "a", "3"), (6, "c", "active")]


def test_second_round_reads_only_what_is_new(tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), ("b", "1"))
    partition_log.roll()
    result = clean(partition_log, clock, executor)
    assert result is not None
    write(partition_log, ("a", "2"))
    partition_log.roll()
    clean(partition_log, clock, executor, checkpoint=result.cleaned_to_offset)
    assert contents(partition_log) == [(1, "b", "1"), (2, "a", "2")]


def test_small_segments_are_put_together(tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor) -> None:
    partition_log = open_log(tmp_path, clock)
    for number in range(5):
        write(partition_log, (f"key {number}", "1"))
        partition_log.roll()
    clean(partition_log, clock, executor)
    assert [segment.base_offset for segment in partition_log.segments] == [0, 5]
    assert len(contents(partition_log)) == 5


def test_cleaned_segment_has_its_index_files_even_if_they_are_empty(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), at_ms=-1)
    partition_log.roll()
    write(partition_log, ("a", "2"), at_ms=-1)
    partition_log.roll()
    clean(partition_log, clock, executor)
    partition_log.close()
    for segment in partition_log.segments:
        assert segment.offsets.path.exists()
        assert segment.times.path.exists()


def test_cleaned_segment_stays_within_segment_bytes(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    for number in range(6):
        write(partition_log, (f"key {number}", "x" * 1000))
        partition_log.roll()
    partition_log.configure(TopicSettings(cleanup_policy=COMPACT, segment_bytes=2500))
    clean(partition_log, clock, executor)
    assert [segment.base_offset for segment in partition_log.segments] == [0, 2, 4, 6]


def test_full_key_map_cleans_as_far_as_it_reached(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), ("a", "2"), ("b", "1"), ("c", "1"), ("a", "3"))
    partition_log.roll()
    result = clean(partition_log, clock, executor, buffer_bytes=3 * ENTRY_BYTES)
    assert result is not None
    assert result.cleaned_to_offset == 3
    assert contents(partition_log) == [(1, "a", "2"), (2, "b", "1"), (3, "c", "1"), (4, "a", "3")]
    again = clean(partition_log, clock, executor, checkpoint=3, buffer_bytes=3 * ENTRY_BYTES)
    assert again is not None
    assert again.cleaned_to_offset == 5
    assert contents(partition_log) == [(2, "b", "1"), (3, "c", "1"), (4, "a", "3")]


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_codec(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor, codec: Codec
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), ("b", "1"), codec=codec)
    write(partition_log, ("a", "2"), codec=codec)
    partition_log.roll()
    clean(partition_log, clock, executor)
    assert [header.codec for header, _ in batches(partition_log)] == [codec, codec]
    assert contents(partition_log) == [(1, "b", "1"), (2, "a", "2")]


def test_batch_that_cannot_be_read_is_kept_with_one_line_in_the_log(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"))
    write(partition_log, ("a", "2"))
    write(partition_log, ("a", "3"))
    partition_log.roll()
    damage(partition_log, batch_number=1)
    clean(partition_log, clock, executor)
    left = [header.base_offset for header, _ in partition_log.read_batches(0, 9)]
    assert left == [1, 2]
    assert caplog.messages.count("unreadable batch kept unchanged by compaction") == 1


def damage(partition_log: PartitionLog, batch_number: int) -> None:
    """Flip a bit in the last byte of a batch of the first segment."""
    path = partition_log.segments[0].path
    data = bytearray(path.read_bytes())
    position = 0
    for _ in range(batch_number):
        position += parse_header(data, position).size
    data[position + parse_header(data, position).size - 1] ^= 1
    path.write_bytes(bytes(data))


def test_log_that_was_truncated_meanwhile_is_left_alone(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"))
    partition_log.roll()
    write(partition_log, ("a", "2"))
    partition_log.roll()
    found = plan(partition_log, clock)

    async def race() -> CleaningResult | None:
        compactor = Compactor(clock, executor, buffer_bytes=1 << 20)
        task = asyncio.create_task(compactor.clean(partition_log, found))
        await asyncio.sleep(0)
        partition_log.truncate_to(1)
        return await task

    assert asyncio.run(race()) is None
    assert contents(partition_log) == [(0, "a", "1")]
    assert not list(tmp_path.glob("*.cleaned")) + list(tmp_path.glob("*.swap"))


def test_deleted_log_is_left_alone(tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), ("a", "2"))
    partition_log.roll()
    compactor = Compactor(clock, executor, buffer_bytes=1 << 20)
    cleaning = compactor.clean(partition_log, plan(partition_log, clock), is_current=lambda: False)
    assert asyncio.run(cleaning) is None
    assert len(contents(partition_log)) == 2
    assert not list(tmp_path.glob("*.cleaned"))


def test_stopped_compaction_leaves_nothing_behind(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    for _ in range(600):
        write(partition_log, ("a", "1"))
    partition_log.roll()
    compactor = Compactor(clock, executor, buffer_bytes=1 << 20)
    compactor.stop()
    with pytest.raises(CleaningStoppedError):
        asyncio.run(compactor.clean(partition_log, plan(partition_log, clock)))
    assert not list(tmp_path.glob("*.cleaned"))


def test_reader_of_an_old_segment_goes_on(tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "1"), ("a", "2"))
    partition_log.roll()
    held = partition_log.read(0, 1 << 20, upper_offset=2)
    assert held is not None
    clean(partition_log, clock, executor)
    partition_log.remove_deleted_files(at_once=True)
    data = held.file.read(held.position, held.length)
    assert len(read_records(data, parse_header(data))) == 2


def test_idempotent_producer_is_known_after_compaction_and_a_crash(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    batch = build_batch([Record(-1, NOW_MS, b"a", b"1")], producer_id=7, producer_epoch=0, base_sequence=0)
    partition_log.append(bytearray(batch), leader_epoch=0)
    write(partition_log, ("a", "2"))
    partition_log.roll()
    clean(partition_log, clock, executor)
    assert contents(partition_log) == [(1, "a", "2")]
    for snapshot in tmp_path.glob("*.snapshot"):
        snapshot.unlink()
    recovered = open_log(tmp_path, clock)
    result = recovered.append(bytearray(batch), leader_epoch=0)
    assert (result.duplicate, result.first_offset) == (True, 0)


def test_fetch_goes_past_what_compaction_has_emptied(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock, TopicSettings(cleanup_policy=COMPACT, segment_bytes=100))
    for _ in range(5):
        write(partition_log, ("a", "1"))
    clean(partition_log, clock, executor)
    for offset in range(5):
        found = partition_log.read(offset, 1 << 20, upper_offset=5)
        assert found is not None
        data = found.file.read(found.position, found.length)
        assert parse_header(data).base_offset == max(offset, 3)


# -- transactions ------------------------------------------------------------------------------------------------------


def append_transactional(
    partition_log: PartitionLog, producer_id: int, sequence: int, *pairs: tuple[str, str | None]
) -> None:
    records = [Record(-1, NOW_MS, key.encode(), None if value is None else value.encode()) for key, value in pairs]
    batch = build_batch(
        records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )
    partition_log.append(batch, leader_epoch=0)


def end_transaction(partition_log: PartitionLog, producer_id: int, *, commit: bool) -> None:
    marker = end_transaction_marker(producer_id, 0, commit=commit, coordinator_epoch=0, timestamp_ms=NOW_MS)
    partition_log.append(marker, leader_epoch=0, origin=Origin.COORDINATOR)


def test_aborted_value_goes_and_does_not_supersede_the_committed_one(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    write(partition_log, ("a", "committed"))
    append_transactional(partition_log, 7, 0, ("a", "aborted"))
    partition_log.roll()
    end_transaction(partition_log, 7, commit=False)
    write(partition_log, ("b", "1"))
    partition_log.roll()
    clean(partition_log, clock, executor)
    assert contents(partition_log) == [(0, "a", "committed"), (3, "b", "1")]


# -- everything at once ------------------------------------------------------------------------------------------------


@dataclass
class Written:
    """What a random log holds, as a list."""

    records: list[tuple[int, str, str | None]] = field(default_factory=list)
    undecided: dict[int, list[tuple[int, str, str | None]]] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)


Step = tuple[str, int, list[tuple[str, str | None]]]
pairs = st.lists(
    st.tuples(st.sampled_from("abcde"), st.one_of(st.none(), st.sampled_from(["1", "2"]))), min_size=1, max_size=4
)
steps = st.lists(
    st.tuples(st.sampled_from(["plain", "plain", "transaction", "commit", "abort", "roll"]), st.integers(1, 2), pairs),
    min_size=1,
    max_size=25,
)


def write_randomly(partition_log: PartitionLog, steps: list[Step]) -> Written:
    written = Written()
    for number, (action, producer_id, some) in enumerate(steps):
        offset = partition_log.end_offset
        entries = [(offset + index, key, value) for index, (key, value) in enumerate(some)]
        match action:
            case "plain":
                write(partition_log, *some, codec=list(Codec)[number % 5])
                written.records.extend(entries)
            case "transaction":
                sequence = written.sequences.get(producer_id, 0)
                append_transactional(partition_log, producer_id, sequence, *some)
                written.sequences[producer_id] = sequence + len(some)
                written.undecided.setdefault(producer_id, []).extend(entries)
            case "roll":
                partition_log.roll()
            case _:
                decide(partition_log, written, producer_id, commit=action == "commit")
    for producer_id in list(written.undecided):
        decide(partition_log, written, producer_id, commit=True)
    partition_log.roll()
    written.records.sort()
    return written


def decide(partition_log: PartitionLog, written: Written, producer_id: int, *, commit: bool) -> None:
    end_transaction(partition_log, producer_id, commit=commit)
    entries = written.undecided.pop(producer_id, [])
    if commit:
        written.records.extend(entries)


def newest(records: list[tuple[int, str, str | None]]) -> list[tuple[int, str, str | None]]:
    last = {key: offset for offset, key, _ in records}
    return [entry for entry in records if last[entry[1]] == entry[0]]


@settings(max_examples=40, deadline=None)
@given(steps=steps, capacity=st.sampled_from([3, 100]))
def test_random_logs_keep_the_newest_committed_value_of_each_key(
    steps: list[Step], capacity: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clock = ManualClock(now_ms=NOW_MS)
    directory = tmp_path_factory.mktemp("log")
    partition_log = open_log(directory, clock)
    written = write_randomly(partition_log, steps)
    before = {header.base_offset: header.last_offset for header, _ in batches(partition_log)}
    end_offset = partition_log.end_offset
    with ThreadPoolExecutor(1) as executor:
        clean_completely(partition_log, clock, executor, capacity)
        assert contents(partition_log) == newest(written.records)
        assert_same_places(partition_log, before)
        clock.advance(SETTINGS.delete_retention_ms + 1)
        write(partition_log, ("tick", "1"))
        partition_log.roll()
        clean_completely(partition_log, clock, executor, capacity)
    alive = [entry for entry in newest(written.records) if entry[2] is not None]
    assert contents(partition_log) == [*alive, (end_offset, "tick", "1")]
    recovered = open_log(directory, clock)
    assert contents(recovered) == contents(partition_log)
    assert recovered.end_offset == partition_log.end_offset


def clean_completely(
    partition_log: PartitionLog, clock: ManualClock, executor: ThreadPoolExecutor, capacity: int
) -> None:
    """Clean in as many rounds as the key map needs."""
    checkpoint = partition_log.start_offset
    while checkpoint < partition_log.end_offset:
        size = capacity * ENTRY_BYTES * 2
        result = clean(partition_log, clock, executor, checkpoint=checkpoint, buffer_bytes=size)
        assert result is not None
        assert result.cleaned_to_offset > checkpoint
        checkpoint = result.cleaned_to_offset


def assert_same_places(partition_log: PartitionLog, before: dict[int, int]) -> None:
    for header, records in batches(partition_log):
        assert before[header.base_offset] == header.last_offset
        assert all(header.base_offset <= record.offset <= header.last_offset for record in records)


# -- crashes -----------------------------------------------------------------------------------------------------------


class CrashError(Exception):
    """The moment at which a machine stops."""


def crash_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Make the n-th rename or removal of a file fail, and all after it; returns how many were counted."""
    count = 0

    def guarded(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal count
            count += 1
            if count > step:
                raise CrashError
            return function(*arguments, **options)

        return call

    for name in ("rename", "replace", "unlink"):
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name)))
    monkeypatch.setattr(os, "utime", guarded(os.utime))
    return lambda: count


def prepare_crash(directory: Path, clock: ManualClock) -> tuple[PartitionLog, list[tuple[int, str, str | None]]]:
    partition_log = open_log(directory, clock)
    write(partition_log, ("a", "1"), ("b", "1"))
    append_transactional(partition_log, 7, 0, ("a", "aborted"))
    partition_log.roll()
    end_transaction(partition_log, 7, commit=False)
    write(partition_log, ("a", "2"))
    partition_log.roll()
    write(partition_log, ("c", "1"), ("b", None))
    partition_log.roll()
    write(partition_log, ("d", "active"))
    partition_log.flush()
    return partition_log, [(4, "a", "2"), (5, "c", "1"), (6, "b", None), (7, "d", "active")]


@pytest.mark.parametrize("with_recovery_point", [True, False])
def test_crash_at_any_step_leaves_a_log_that_recovery_makes_right(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor, with_recovery_point: bool
) -> None:
    outcomes = set()
    for step in range(100):
        directory = tmp_path / str(step)
        partition_log, cleaned = prepare_crash(directory, clock)
        original = visible(partition_log)
        with pytest.MonkeyPatch.context() as monkeypatch:
            crash_at(step, monkeypatch)
            try:
                clean(partition_log, clock, executor)
                is_finished = True
            except CrashError:
                is_finished = False
        recovered = PartitionLog.open(
            directory,
            topic="orders",
            partition=0,
            settings=SETTINGS,
            clock=clock,
            recovery_point=partition_log.recovery_point if with_recovery_point else 0,
        )
        assert visible(recovered) in (original, cleaned), f"after step {step}"
        assert not leftovers(directory) or is_finished
        for offset in range(8):
            assert recovered.read(offset, 1 << 20, upper_offset=8) is not None
        outcomes.add(visible(recovered) == cleaned)
        shutil.rmtree(directory)
        if is_finished:
            break
    assert outcomes == {True, False}


def visible(partition_log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """What a read_committed consumer sees."""
    aborted = dict(partition_log.aborted_transactions(0, partition_log.end_offset))
    seen: list[tuple[int, str, str | None]] = []
    for header, records in batches(partition_log):
        if header.is_control:
            aborted.pop(header.producer_id, None)
        elif not header.is_transactional or header.base_offset < aborted.get(header.producer_id, 1 << 62):
            seen.extend(
                (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
                for record in records
            )
    return seen


def leftovers(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]


def test_indexes_of_a_cleaned_segment_lead_to_every_offset_and_time(
    tmp_path: Path, clock: ManualClock, executor: ThreadPoolExecutor
) -> None:
    partition_log = open_log(tmp_path, clock)
    for number in range(200):
        write(partition_log, (f"key {number % 100}", "x" * 50), at_ms=NOW_MS + number)
    partition_log.roll()
    clean(partition_log, clock, executor)
    cleaned = partition_log.segments[0]
    assert cleaned.offsets.count > 20
    cleaned.offsets.check()
    cleaned.times.check()
    for offset in range(0, 200, 7):
        found = partition_log.read(offset, 1, upper_offset=200)
        assert found is not None
        data = found.file.read(found.position, found.length)
        assert parse_header(data).base_offset == max(offset, 100)
    by_time = partition_log.offset_for_timestamp(NOW_MS + 150, upper_offset=200)
    assert by_time is not None
    assert by_time.offset == 150
    assert cleaned.greatest_timestamp.timestamp == NOW_MS + 199
