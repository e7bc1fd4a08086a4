"""Partitions on their way from one folder of log.dirs to another: what is kept, and what a crash leaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.log.store import LogStore
from core_broker.protocol.records import Record, build_batch, end_transaction_marker
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, TopicSettings

NOW_MS = 1_700_000_000_000
TOPIC_ID = b"0123456789abcdef"
SETTINGS = TopicSettings(segment_bytes=1000, index_interval_bytes=100)
WAIT_S = 30


class Disks:
    """Two folders of log.dirs, and the stores that a test opens on them one after the other."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock(now_ms=NOW_MS)
        self.paths = (path / "a", path / "b")
        self.opened: list[LogStore] = []

    def open(self) -> LogStore:
        store = LogStore(self.paths, BrokerSettings(), self.clock)
        store.load()
        self.opened.append(store)
        return store

    def kill(self, store: LogStore) -> None:
        """Let go of the locks as a killed process would, and of nothing else."""
        self.opened.remove(store)
        for directory in store.directories:
            directory.close()

    def names(self, number: int) -> list[str]:
        """The folders of partitions in one of the two, and of what is on its way there or to be deleted."""
        return sorted(path.name for path in self.paths[number].iterdir() if path.is_dir())


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    made = Disks(tmp_path)
    yield made
    for store in made.opened:
        store.close()


@contextlib.asynccontextmanager
async def moving(store: LogStore) -> AsyncIterator[None]:
    """Carry out moves in the background for as long as the block lasts."""
    work = asyncio.create_task(store.moves.run())
    try:
        yield
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not claim():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.001)


async def move(store: LogStore, partition_log: PartitionLog, path: Path) -> None:
    """Move a log and wait for the end of it."""
    assert store.moves.begin(partition_log.topic, partition_log.partition, str(path))
    async with moving(store):
        await until(lambda: not list(store.moves))


def create(store: LogStore, count: int = 40, settings: TopicSettings = SETTINGS) -> PartitionLog:
    """The log of t-0, in the first folder, with this many batches of one record."""
    created = store.create("t", 0, TOPIC_ID, settings)
    assert created.directory.parent == store.directories[0].path
    for number in range(count):
        append(created, b"v%d" % number)
    return created


def append(partition_log: PartitionLog, *values: bytes, **producer: int) -> int:
    records = [Record(timestamp=NOW_MS, value=value) for value in values]
    batch = build_batch(records, **producer)  # type: ignore[arg-type]  # ids and epochs, as build_batch names them
    return partition_log.append(batch, leader_epoch=3).first_offset


def contents(partition_log: PartitionLog) -> list[bytes]:
    batches = partition_log.read_batches(partition_log.start_offset, partition_log.end_offset)
    return [bytes(batch) for _, batch in batches]


# -- what is kept ------------------------------------------------------------------------------------------------------


async def test_a_moved_log_has_all_its_batches_and_goes_on_in_the_other_folder(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    before = contents(log)
    await move(store, log, disks.paths[1])
    assert log.directory == disks.paths[1] / "t-0"
    assert contents(log) == before
    assert append(log, b"next") == 40
    assert disks.names(1) == ["t-0"]
    (doomed,) = disks.names(0)
    assert doomed.startswith("t-0.")
    assert doomed.endswith("-delete")
    disks.clock.advance(61_000)
    assert store.take_due_directories() == [disks.paths[0] / doomed]
    assert log.epochs.end_offset_for(3, log.end_offset) == (3, 41)


async def test_what_is_appended_during_the_move_is_moved_too(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    store.moves.bytes_per_second = 1000
    store.moves.begin("t", 0, str(disks.paths[1]))
    async with moving(store):
        await until(lambda: any(found.copy.end_offset for found in store.moves))
        for number in range(40, 80):
            assert append(log, b"v%d" % number) == number
        store.moves.bytes_per_second = 2**63 - 1
        while list(store.moves):
            append(log, b"more")
            await asyncio.sleep(0.001)
    assert log.directory.parent == disks.paths[1]
    batches = log.read_batches(0, log.end_offset)
    assert [header.base_offset for header, _ in batches] == list(range(log.end_offset))


async def test_a_slice_on_its_way_to_a_consumer_stays_whole(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    piece = log.read(0, 1_000_000, upper_offset=log.end_offset)
    assert piece is not None
    before = piece.file.read(piece.position, piece.length)
    await move(store, log, disks.paths[1])
    assert piece.file.read(piece.position, piece.length) == before


async def test_a_reader_in_the_middle_of_the_log_goes_on(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    assert len(log.segments) > 1
    reading = log.read_batches(0, 40)
    seen = [next(reading)[0].base_offset]
    await move(store, log, disks.paths[1])
    seen += [header.base_offset for header, _ in reading]
    assert seen == list(range(40))


async def test_a_retry_of_a_producer_is_known_after_the_move_and_after_a_crash(disks: Disks) -> None:
    store = disks.open()
    log = create(store, count=3)
    append(log, b"once", producer_id=7, producer_epoch=0, base_sequence=0)
    for number in range(40):
        append(log, b"v%d" % number)
    log.delete_records_before(20)
    log.delete_old_segments(high_watermark=log.end_offset)
    await move(store, log, disks.paths[1])
    disks.kill(store)
    found = disks.open().get("t", 0)
    assert found is not None
    assert found.end_offset == 44
    assert append(found, b"once", producer_id=7, producer_epoch=0, base_sequence=0) == 3
    assert found.end_offset == 44


async def test_aborted_transactions_are_known_after_the_move(disks: Disks) -> None:
    store = disks.open()
    log = create(store, count=5)
    append(log, b"gone", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    marker = end_transaction_marker(7, 0, commit=False, coordinator_epoch=0, timestamp_ms=NOW_MS)
    log.append(marker, leader_epoch=3, origin=Origin.COORDINATOR)
    assert log.aborted_transactions(0, 7) == [(7, 5)]
    await move(store, log, disks.paths[1])
    assert log.aborted_transactions(0, 7) == [(7, 5)]


async def test_a_log_that_starts_within_a_batch_does_so_after_the_move_and_a_crash(disks: Disks) -> None:
    store = disks.open()
    log = create(store, count=1)
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    log.delete_records_before(2)
    await move(store, log, disks.paths[1])
    assert (log.start_offset, log.end_offset) == (2, 5)
    assert len(contents(log)) == 2
    disks.kill(store)
    found = disks.open().get("t", 0)
    assert found is not None
    assert (found.start_offset, found.end_offset) == (2, 5)


async def test_an_empty_log_keeps_its_offsets(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    log.truncate_fully_and_start_at(100)
    await move(store, log, disks.paths[1])
    assert append(log, b"next") == 100


async def test_retention_during_the_move_is_no_hindrance(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    store.moves.bytes_per_second = 1
    store.moves.begin("t", 0, str(disks.paths[1]))
    async with moving(store):
        await until(lambda: any(found.copy.end_offset for found in store.moves))
        log.delete_records_before(30)
        log.delete_old_segments(high_watermark=log.end_offset)
        store.moves.bytes_per_second = 2**63 - 1
        await until(lambda: not list(store.moves))
    assert (log.directory.parent, log.start_offset, log.end_offset) == (disks.paths[1], 30, 40)


async def test_a_compacted_log_is_cleaned_from_the_start_after_the_move(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    store.cleaner_offsets["t", 0] = 30
    await move(store, log, disks.paths[1])
    assert store.cleaner_offsets == {}


# -- asking for it -----------------------------------------------------------------------------------------------------


async def test_a_move_is_halted_by_a_rate_of_nothing_and_seen_meanwhile(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    store.moves.bytes_per_second = 0
    store.moves.begin("t", 0, str(disks.paths[1]))
    async with moving(store):
        await asyncio.sleep(0)
        (found,) = store.moves
        assert (found.lag, found.copy.size_bytes) == (40, 0)
        assert found.copy.directory.parent == disks.paths[1]
        assert found.copy.directory.name.endswith("-future")
        store.moves.bytes_per_second = 2**63 - 1
        await until(lambda: not list(store.moves))
    assert log.directory.parent == disks.paths[1]


def test_a_move_back_is_a_cancellation(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    store.moves.begin("t", 0, str(disks.paths[1]))
    assert store.moves.begin("t", 0, str(disks.paths[1]))
    assert len(list(store.moves)) == 1
    assert store.moves.begin("t", 0, str(disks.paths[0]))
    assert list(store.moves) == []
    assert [name.endswith("-delete") for name in disks.names(1)] == [True]
    assert log.directory == disks.paths[0] / "t-0"


def test_a_topic_that_is_deleted_takes_its_copy_along(disks: Disks) -> None:
    store = disks.open()
    create(store)
    store.moves.begin("t", 0, str(disks.paths[1]))
    store.delete("t", 0)
    assert list(store.moves) == []
    assert all(name.endswith("-delete") for number in (0, 1) for name in disks.names(number))


def test_an_unknown_folder_is_refused(disks: Disks) -> None:
    store = disks.open()
    create(store)
    with pytest.raises(BrokerError, match="is not one of log.dirs") as caught:
        store.moves.begin("t", 0, "/nowhere")
    assert caught.value.code is ErrorCode.LOG_DIR_NOT_FOUND


def test_a_name_that_leaves_no_room_for_the_copy_is_refused(disks: Disks) -> None:
    with pytest.raises(BrokerError) as caught:
        disks.open().moves.begin("t" * 249, 0, str(disks.paths[1]))
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_partition_that_comes_later_is_made_where_it_was_asked_for(disks: Disks) -> None:
    store = disks.open()
    assert not store.moves.begin("t", 0, str(disks.paths[1]))
    assert store.create("t", 0, TOPIC_ID, SETTINGS).directory.parent == disks.paths[1]


# -- crashes -----------------------------------------------------------------------------------------------------------


async def test_a_crash_during_the_move_leaves_the_log_and_the_next_start_goes_on_with_it(disks: Disks) -> None:
    store = disks.open()
    log = create(store)
    before = contents(log)
    store.moves.bytes_per_second = 1000
    store.moves.begin("t", 0, str(disks.paths[1]))
    async with moving(store):
        await until(lambda: any(found.copy.end_offset for found in store.moves))
    disks.kill(store)
    store = disks.open()
    found = store.get("t", 0)
    assert found is not None
    (unfinished,) = store.moves
    assert 0 < unfinished.copy.end_offset <= 40
    async with moving(store):
        await until(lambda: not list(store.moves))
    assert found.directory == disks.paths[1] / "t-0"
    assert contents(found) == before


def test_a_crash_between_the_two_renames_leaves_one_log(disks: Disks) -> None:
    store = disks.open()
    before = contents(create(store))
    disks.kill(store)
    former, name = disks.paths[0] / "t-0", "t-0"
    (disks.paths[1] / name).mkdir()
    for path in former.iterdir():
        (disks.paths[1] / name / path.name).write_bytes(path.read_bytes())
    store.directories[1].marker_of_move(name).touch()
    store = disks.open()
    found = store.get("t", 0)
    assert found is not None
    assert found.directory == disks.paths[1] / name
    assert contents(found) == before
    assert [name.endswith("-delete") for name in disks.names(0)] == [True]
    assert store.directories[1].markers_of_moves() == []


def test_a_crash_before_the_first_rename_leaves_the_log_where_it_was(disks: Disks) -> None:
    store = disks.open()
    create(store)
    store.directories[1].marker_of_move("t-0").touch()
    disks.kill(store)
    found = disks.open().get("t", 0)
    assert found is not None
    assert found.directory.parent == disks.paths[0]


def test_a_crash_after_the_last_rename_leaves_the_moved_log(disks: Disks) -> None:
    store = disks.open()
    create(store)
    disks.kill(store)
    (disks.paths[0] / "t-0").rename(disks.paths[1] / "t-0")
    store.directories[1].marker_of_move("t-0").touch()
    store = disks.open()
    found = store.get("t", 0)
    assert found is not None
    assert (found.directory.parent, found.end_offset) == (disks.paths[1], 40)
    assert store.directories[1].markers_of_moves() == []


def test_a_copy_of_an_unknown_partition_is_deleted(disks: Disks) -> None:
    store = disks.open()
    disks.kill(store)
    (disks.paths[1] / f"gone-0.{'0' * 32}-future").mkdir()
    store = disks.open()
    assert list(store.moves) == []
    assert [name.endswith("-delete") for name in disks.names(1)] == [True]
