"""The store of all logs: finding, making, deleting and leaving them, and what it does in the background."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.checkpoints import read_offsets, write_offsets
from core_broker.log.log_directory import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    META_FILE,
    RECOVERY_POINT_FILE,
)
from core_broker.log.partition_log import PartitionLog
from core_broker.log.store import LogStore
from core_broker.log.upkeep import Upkeep
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, TopicSettings

NOW_MS = 1_700_000_000_000
TOPIC_ID = b"0123456789abcdef"
OTHER_ID = b"fedcba9876543210"
SETTINGS = TopicSettings()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now_ms=NOW_MS)


class Stores:
    """Opens stores on one directory, one after the other, and closes what a test leaves open."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        self.path = path
        self.clock = clock
        self.opened: list[LogStore] = []

    def open(self, *paths: Path, settings: BrokerSettings | None = None) -> LogStore:
        store = LogStore(paths or [self.path], settings or BrokerSettings(), self.clock)
        store.load()
        store.high_watermark_of = lambda partition_log: partition_log.end_offset  # as the only replica's leader says
        self.opened.append(store)
        return store

    def close(self, store: LogStore, *, broker_epoch: int = -1) -> None:
        self.opened.remove(store)
        store.close(broker_epoch=broker_epoch)

    def kill(self, store: LogStore) -> None:
        """Let go of the lock as a killed process would, and of nothing else."""
        self.opened.remove(store)
        for directory in store.directories:
            directory.close()

    def close_all(self) -> None:
        for store in tuple(self.opened):
            self.close(store)


@pytest.fixture
def stores(tmp_path: Path, clock: ManualClock) -> Iterator[Stores]:
    stores = Stores(tmp_path / "data", clock)
    yield stores
    stores.close_all()


def append(partition_log: PartitionLog, count: int = 1, *, key: bytes = b"k", at_ms: int = NOW_MS) -> None:
    partition_log.append(build_batch([Record(-1, at_ms, key, b"v")] * count), leader_epoch=0)


# -- life --------------------------------------------------------------------------------------------------------------


def test_logs_are_found_again_after_a_clean_stop(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS), 3)
    append(store.create("orders", 12, TOPIC_ID, SETTINGS), 5)
    stores.close(store)
    again = stores.open()
    assert again.was_clean
    assert {(found.topic, found.partition): found.end_offset for found in again} == {
        ("orders", 0): 3,
        ("orders", 12): 5,
    }


def test_log_is_found_in_order_though_nothing_was_written_to_it_in_the_last_run(stores: Stores) -> None:
    store = stores.open()
    batch = build_batch([Record(-1, NOW_MS, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    store.create("orders", 0, TOPIC_ID, SETTINGS).append(bytearray(batch), leader_epoch=0)
    stores.close(store)
    for _ in range(2):
        stores.close(stores.open())
    last = stores.open()
    assert last.was_clean
    found = last.get("orders", 0)
    assert found is not None
    assert found.append(bytearray(batch), leader_epoch=0).duplicate


def test_logs_are_recovered_after_a_kill(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS), 3)
    stores.kill(store)
    again = stores.open()
    assert not again.was_clean
    found = again.get("orders", 0)
    assert found is not None
    assert found.end_offset == 3


def test_crash_while_loading_counts_as_unclean(stores: Stores) -> None:
    stores.close(stores.open())
    stores.kill(stores.open())
    assert not stores.open().was_clean


def test_two_stores_never_share_a_directory(stores: Stores, clock: ManualClock) -> None:
    stores.open()
    with pytest.raises(BrokerError, match="in use by another broker"):
        LogStore([stores.path], BrokerSettings(), clock).load()


def test_cluster_gets_an_id_at_the_first_start_and_keeps_it(stores: Stores) -> None:
    store = stores.open()
    assert store.cluster_id
    stores.close(store)
    assert stores.open().cluster_id == store.cluster_id


def test_broker_epoch_of_the_last_run_is_known_after_a_clean_stop(tmp_path: Path, stores: Stores) -> None:
    directories = (tmp_path / "one", tmp_path / "two")
    first = stores.open(*directories)
    assert first.previous_broker_epoch == -1
    stores.close(first, broker_epoch=17)
    assert stores.open(*directories).previous_broker_epoch == 17


def test_broker_epoch_of_the_last_run_is_unknown_after_a_crash(stores: Stores) -> None:
    stores.close(stores.open(), broker_epoch=17)
    stores.kill(stores.open())
    assert stores.open().previous_broker_epoch == -1


def test_broker_epoch_of_the_last_run_is_unknown_if_the_directories_disagree(tmp_path: Path, stores: Stores) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    stores.close(stores.open(one, two), broker_epoch=17)
    assert stores.open(one, two, tmp_path / "new").previous_broker_epoch == -1
    stores.close_all()
    stores.close(stores.open(one), broker_epoch=18)
    assert stores.open(one, two).previous_broker_epoch == -1


def test_broker_epoch_of_the_last_run_is_unknown_if_a_log_cannot_be_opened(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    stores.close(store, broker_epoch=17)
    (stores.path / "orders-0" / "00000000000000000000.log").unlink()
    (stores.path / "orders-0" / "00000000000000000000.log").mkdir()
    assert stores.open().previous_broker_epoch == -1


def test_node_that_joins_a_cluster_has_no_cluster_id_until_it_adopts_one(stores: Stores) -> None:
    joining = BrokerSettings(controller_quorum_bootstrap_servers=("other:9093",))
    store = stores.open(settings=joining)
    assert store.cluster_id is None
    directory_id = store.metadata_directory.directory_id
    stores.close(store)
    again = stores.open(settings=joining)
    assert (again.cluster_id, again.metadata_directory.directory_id) == (None, directory_id)
    again.adopt_cluster_id("theirs")
    assert again.cluster_id == "theirs"
    stores.close(again)
    last = stores.open(settings=joining)
    assert (last.cluster_id, last.metadata_directory.directory_id) == ("theirs", directory_id)


def test_member_of_a_cluster_does_not_adopt_another(stores: Stores) -> None:
    store = stores.open()
    with pytest.raises(BrokerError) as caught:
        store.adopt_cluster_id("another")
    assert caught.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert store.cluster_id != "another"


def test_metadata_is_in_the_first_directory_unless_another_is_chosen(tmp_path: Path, stores: Stores) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert stores.open(one, two).metadata_directory.path == one
    stores.close_all()
    chosen = stores.open(one, two, settings=BrokerSettings(metadata_log_dir=str(tmp_path / "one" / ".." / "two")))
    assert chosen.metadata_directory is chosen.directories[1]


def test_metadata_directory_of_its_own_is_locked_and_belongs_to_the_node(tmp_path: Path, stores: Stores) -> None:
    settings = BrokerSettings(metadata_log_dir=str(tmp_path / "metadata"))
    store = stores.open(settings=settings)
    assert [directory.path for directory in store.directories] == [stores.path]
    directory_id = store.metadata_directory.directory_id
    assert directory_id not in (store.directories[0].directory_id, bytes(16))
    assert f"cluster.id={store.cluster_id}\n" in (tmp_path / "metadata" / META_FILE).read_text()
    with pytest.raises(BrokerError, match=r"metadata\.log\.dir: .* is in use by another broker"):
        stores.open(tmp_path / "other", settings=settings)
    stores.close(store)
    assert stores.open(settings=settings).metadata_directory.directory_id == directory_id


def test_metadata_directory_of_another_cluster_is_refused(tmp_path: Path, stores: Stores) -> None:
    settings = BrokerSettings(metadata_log_dir=str(tmp_path / "metadata"))
    stores.close(stores.open(settings=settings))
    stores.close(stores.open(tmp_path / "other"))
    with pytest.raises(BrokerError, match=META_FILE):
        stores.open(tmp_path / "other", settings=settings)


def test_metadata_log_in_another_directory_is_refused_rather_than_started_anew(tmp_path: Path, stores: Stores) -> None:
    (stores.path / "__cluster_metadata-0").mkdir(parents=True)
    with pytest.raises(BrokerError, match=rf"set metadata\.log\.dir={stores.path}, or move __cluster_metadata-0"):
        stores.open(settings=BrokerSettings(metadata_log_dir=str(tmp_path / "metadata")))


def test_copy_of_a_directory_is_refused(tmp_path: Path, stores: Stores) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    stores.close(stores.open(one))
    two.mkdir()
    (two / META_FILE).write_text((one / META_FILE).read_text())
    with pytest.raises(BrokerError, match="remove the copy"):
        stores.open(one, two)


def test_directory_of_another_node_is_refused(stores: Stores, clock: ManualClock) -> None:
    stores.close(stores.open())
    with pytest.raises(BrokerError, match=r"node\.id=1, but this broker has node\.id=5"):
        LogStore([stores.path], BrokerSettings(node_id=5), clock).load()
    stores.open()


def test_directories_of_two_clusters_are_refused(tmp_path: Path, stores: Stores, clock: ManualClock) -> None:
    stores.close(stores.open(tmp_path / "one"))
    stores.close(stores.open(tmp_path / "two"))
    with pytest.raises(BrokerError, match=META_FILE):
        LogStore([tmp_path / "one", tmp_path / "two"], BrokerSettings(), clock).load()


def test_refused_directory_leaves_the_others_unclaimed(tmp_path: Path, stores: Stores, clock: ManualClock) -> None:
    stores.close(stores.open(tmp_path / "old"))
    with pytest.raises(BrokerError, match=r"node\.id=1, but this broker has node\.id=5"):
        LogStore([tmp_path / "new", tmp_path / "old"], BrokerSettings(node_id=5), clock).load()
    assert not (tmp_path / "new" / META_FILE).exists()


def test_new_partition_goes_to_the_directory_with_the_fewest(tmp_path: Path, stores: Stores) -> None:
    store = stores.open(tmp_path / "one", tmp_path / "two")
    for partition in range(4):
        store.create("orders", partition, TOPIC_ID, SETTINGS)
    assert len(list((tmp_path / "one").glob("orders-*"))) == 2
    assert len(list((tmp_path / "two").glob("orders-*"))) == 2


def test_partition_in_two_directories_is_refused(tmp_path: Path, stores: Stores, clock: ManualClock) -> None:
    store = stores.open(tmp_path / "one", tmp_path / "two")
    store.create("orders", 0, TOPIC_ID, SETTINGS)
    stores.close(store)
    for path in (tmp_path / "one" / "orders-0", tmp_path / "two" / "orders-0"):
        path.mkdir(exist_ok=True)
    with pytest.raises(BrokerError, match="remove one of them"):
        LogStore([tmp_path / "one", tmp_path / "two"], BrokerSettings(), clock).load()


def test_metadata_log_is_left_to_the_quorum(stores: Stores) -> None:
    (stores.path / "__cluster_metadata-0").mkdir(parents=True)
    assert len(stores.open()) == 0


def test_log_that_cannot_be_opened_leaves_the_others_alone(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    store.create("orders", 1, TOPIC_ID, SETTINGS)
    stores.close(store)
    (stores.path / "orders-0" / "00000000000000000000.log").unlink()
    (stores.path / "orders-0" / "00000000000000000000.log").mkdir()
    again = stores.open()
    assert again.get("orders", 1) is not None
    with pytest.raises(BrokerError) as caught:
        again.create("orders", 0, TOPIC_ID, SETTINGS)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "log cannot be opened; the partition is offline" in caplog.messages


# -- topics ------------------------------------------------------------------------------------------------------------


def test_known_log_is_given_new_settings(stores: Stores) -> None:
    store = stores.open()
    first = store.create("orders", 0, TOPIC_ID, SETTINGS)
    assert store.create("orders", 0, TOPIC_ID, TopicSettings(retention_ms=5)) is first
    assert first.settings.retention_ms == 5


def test_log_of_a_deleted_namesake_is_put_aside(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    stores.close(store)
    again = stores.open()
    assert again.create("orders", 0, OTHER_ID, SETTINGS).end_offset == 0
    assert len(list(stores.path.glob("orders-0.*-stray"))) == 1


def test_logs_that_the_metadata_does_not_know_are_put_aside(stores: Stores) -> None:
    store = stores.open()
    store.create("orders", 0, TOPIC_ID, SETTINGS)
    store.create("gone", 0, OTHER_ID, SETTINGS)
    store.create("changed", 0, OTHER_ID, SETTINGS)
    assert store.remove_strays({"orders": TOPIC_ID, "changed": TOPIC_ID}) == 2
    assert [found.topic for found in store] == ["orders"]
    assert len(list(stores.path.glob("*-stray"))) == 2


def test_deleted_log_is_gone_at_once_and_its_files_later(stores: Stores, clock: ManualClock) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    store.delete("orders", 0)
    assert store.get("orders", 0) is None
    assert not (stores.path / "orders-0").exists()
    assert store.take_due_directories() == []
    clock.advance(SETTINGS.file_delete_delay_ms)
    (doomed,) = store.take_due_directories()
    assert doomed.name.startswith("orders-0.")
    assert store.create("orders", 0, OTHER_ID, SETTINGS).end_offset == 0


def test_deletion_interrupted_by_a_stop_is_finished_at_the_next_start(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    store.delete("orders", 0)
    stores.close(store)
    again = stores.open()
    assert len(again) == 0
    upkeep = Upkeep(again)
    asyncio.run(upkeep.remove_files())
    upkeep.close()
    assert list(stores.path.glob("*-delete")) == []


def test_log_that_cannot_be_opened_can_be_deleted(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    stores.close(store)
    (stores.path / "orders-0" / "00000000000000000000.log").unlink()
    (stores.path / "orders-0" / "00000000000000000000.log").mkdir()
    again = stores.open()
    again.delete("orders", 0)
    assert again.create("orders", 0, OTHER_ID, SETTINGS).end_offset == 0


def test_deleting_what_is_not_there_does_nothing(stores: Stores) -> None:
    stores.open().delete("orders", 0)


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_checkpoints_say_where_the_logs_are(stores: Stores) -> None:
    store = stores.open()
    partition_log = store.create("orders", 0, TOPIC_ID, SETTINGS)
    append(partition_log, 5)
    partition_log.delete_records_before(2)
    store.cleaner_offsets["orders", 0] = 3
    partition_log.flush()
    append(partition_log)
    store.high_watermark_of = lambda _: 4
    store.checkpoint()
    key = ("orders", 0)
    assert read_offsets(stores.path / RECOVERY_POINT_FILE) == {key: 5}
    assert read_offsets(stores.path / LOG_START_FILE) == {key: 2}
    assert read_offsets(stores.path / HIGH_WATERMARK_FILE) == {key: 4}
    assert read_offsets(stores.path / CLEANER_FILE) == {key: 3}


def test_checkpoints_are_read_at_the_start(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS), 5)
    store.cleaner_offsets["orders", 0] = 3
    stores.close(store)
    write_offsets(stores.path / LOG_START_FILE, {("orders", 0): 2})
    again = stores.open()
    found = again.get("orders", 0)
    assert found is not None
    assert found.start_offset == 2
    assert again.high_watermarks == {("orders", 0): 5}
    assert again.cleaner_offsets == {("orders", 0): 3}


def test_kafka_858_a_start_that_fails_does_not_overwrite_the_high_watermark(stores: Stores, clock: ManualClock) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS), 5)
    store.high_watermark_of = lambda _: 2
    stores.close(store)
    failed = LogStore([stores.path], BrokerSettings(), clock)
    failed.load()
    failed.close()
    assert stores.open().high_watermarks == {("orders", 0): 2}


@pytest.mark.parametrize("name", [RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE, CLEANER_FILE])
@pytest.mark.parametrize("damage", [b"", b"garbage", b"0\n2\norders 0 5\n", b"0\n1\norders 0 -5\n", b"\xff\xff"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_damaged_checkpoint_is_told_and_survived(
    stores: Stores, caplog: pytest.LogCaptureFixture, name: str, damage: bytes, is_clean: bool
) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS), 5)
    if is_clean:
        stores.close(store)
    else:
        stores.kill(store)
    (stores.path / name).write_bytes(damage)
    found = stores.open().get("orders", 0)
    assert found is not None
    assert (found.start_offset, found.end_offset) == (0, 5)
    assert "corrupt checkpoint ignored" in caplog.messages


def test_deleted_log_is_not_in_the_checkpoints(stores: Stores) -> None:
    store = stores.open()
    store.create("orders", 0, TOPIC_ID, SETTINGS)
    store.checkpoint()
    store.delete("orders", 0)
    store.checkpoint()
    assert read_offsets(stores.path / RECOVERY_POINT_FILE) == {}
    assert read_offsets(stores.path / HIGH_WATERMARK_FILE) == {}


def test_truncation_lowers_what_counts_as_cleaned(stores: Stores) -> None:
    store = stores.open()
    store.cleaner_offsets["orders", 0] = 10
    store.note_truncation("orders", 0, 20)
    assert store.cleaner_offsets["orders", 0] == 10
    store.note_truncation("orders", 0, 7)
    assert store.cleaner_offsets["orders", 0] == 7


# -- flushing ----------------------------------------------------------------------------------------------------------


async def test_flush_now_moves_the_recovery_point(stores: Stores) -> None:
    store = stores.open()
    partition_log = store.create("orders", 0, TOPIC_ID, SETTINGS)
    append(partition_log, 5)
    assert partition_log.recovery_point == 0
    await asyncio.gather(*(store.flush_now(partition_log) for _ in range(10)))
    assert partition_log.recovery_point == 5


async def test_flush_of_what_is_on_disk_asks_nobody(stores: Stores) -> None:
    store = stores.open()
    partition_log = store.create("orders", 0, TOPIC_ID, SETTINGS)
    append(partition_log)
    partition_log.flush()
    waiting = store.flush_now(partition_log)
    with pytest.raises(StopIteration):  # it is finished without having waited
        waiting.send(None)


async def test_log_made_anew_is_the_one_that_is_flushed(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS))
    first = store.get("orders", 0)
    assert first is not None
    await store.flush_now(first)
    store.delete("orders", 0)
    second = store.create("orders", 0, OTHER_ID, SETTINGS)
    append(second, 4)
    await store.flush_now(second)
    assert second.recovery_point == 4


# -- background --------------------------------------------------------------------------------------------------------


@pytest.fixture
def upkeep(stores: Stores) -> Iterator[Upkeep]:
    upkeep = Upkeep(stores.open())
    yield upkeep
    upkeep.close()


def store_of(stores: Stores) -> LogStore:
    (store,) = stores.opened
    return store


async def test_retention_deletes_old_segments_below_the_high_watermark(
    stores: Stores, upkeep: Upkeep, clock: ManualClock
) -> None:
    store = store_of(stores)
    partition_log = store.create("orders", 0, TOPIC_ID, TopicSettings(retention_ms=1000))
    for _ in range(3):
        append(partition_log)
        partition_log.roll()
    clock.advance(1001)
    store.high_watermark_of = lambda _: 2
    await upkeep.apply_retention()
    assert partition_log.start_offset == 2
    clock.advance(SETTINGS.file_delete_delay_ms)
    await upkeep.remove_files()
    assert list(partition_log.directory.glob("*.deleted")) == []


async def test_rolled_segments_are_flushed_in_the_background(stores: Stores, upkeep: Upkeep) -> None:
    partition_log = store_of(stores).create("orders", 0, TOPIC_ID, SETTINGS)
    append(partition_log, 2)
    partition_log.roll()
    append(partition_log, 3)
    await upkeep.flush_due()
    assert partition_log.recovery_point == 2


async def test_flush_ms_is_kept(stores: Stores, upkeep: Upkeep, clock: ManualClock) -> None:
    partition_log = store_of(stores).create("orders", 0, TOPIC_ID, TopicSettings(flush_ms=500))
    append(partition_log, 2)
    await upkeep.flush_due()
    assert partition_log.recovery_point == 0
    clock.advance(500)
    await upkeep.flush_due()
    assert partition_log.recovery_point == 2


async def test_silent_producers_are_forgotten(stores: Stores, upkeep: Upkeep, clock: ManualClock) -> None:
    partition_log = store_of(stores).create("orders", 0, TOPIC_ID, SETTINGS)
    batch = build_batch([Record(-1, NOW_MS, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    partition_log.append(batch, leader_epoch=0)
    await upkeep.expire_producers()
    clock.advance(86_400_000)
    await upkeep.expire_producers()
    assert len(partition_log.producers) == 0


async def test_a_shorter_memory_of_producers_counts_for_the_logs_that_are_there(
    stores: Stores, upkeep: Upkeep, clock: ManualClock
) -> None:
    store = store_of(stores)
    partition_log = store.create("orders", 0, TOPIC_ID, SETTINGS)
    batch = build_batch([Record(-1, NOW_MS, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0)
    partition_log.append(batch, leader_epoch=0)
    await upkeep.expire_producers()
    clock.advance(1000)
    await upkeep.expire_producers()
    assert len(partition_log.producers) == 1
    store.configure(BrokerSettings(producer_id_expiration_ms=1000))
    await upkeep.expire_producers()
    assert len(partition_log.producers) == 0


async def test_a_smaller_memory_for_keys_counts_from_the_next_compaction_on(stores: Stores, upkeep: Upkeep) -> None:
    store = store_of(stores)
    partition_log = store.create("orders", 0, TOPIC_ID, TopicSettings(cleanup_policy=frozenset({"compact"})))
    for number in range(200):
        append(partition_log, key=b"%d" % number)
    partition_log.roll()
    store.configure(BrokerSettings(log_cleaner_dedupe_buffer_size=1))
    await upkeep.clean()
    assert 0 < store.cleaner_offsets["orders", 0] < 200


async def test_a_new_pause_between_compactions_counts_while_they_run(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.open(settings=BrokerSettings(log_cleaner_backoff_ms=7))
    really_sleep = asyncio.sleep
    has_new_pause = asyncio.Event()

    async def sleep(seconds: float) -> None:
        """Let only the compaction have its turns; its first one changes the pause."""
        if seconds == 0.011:
            has_new_pause.set()
        if seconds != 0.007:
            await asyncio.Event().wait()
        store.configure(BrokerSettings(log_cleaner_backoff_ms=11))
        await really_sleep(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    running = asyncio.create_task(store.run())
    async with asyncio.timeout(10):
        await has_new_pause.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_due_logs_are_compacted_and_remembered(stores: Stores, upkeep: Upkeep) -> None:
    store = store_of(stores)
    partition_log = store.create("orders", 0, TOPIC_ID, TopicSettings(cleanup_policy=frozenset({"compact"})))
    append(partition_log, 10)
    partition_log.roll()
    await upkeep.clean()
    records = [header.record_count for header, _ in partition_log.read_batches(0, 10)]
    assert records == [1]
    assert store.cleaner_offsets == {("orders", 0): 10}
    assert read_offsets(stores.path / CLEANER_FILE) == {("orders", 0): 10}


async def test_log_that_cannot_be_read_is_not_compacted_again(
    stores: Stores, upkeep: Upkeep, caplog: pytest.LogCaptureFixture
) -> None:
    partition_log = store_of(stores).create("orders", 0, TOPIC_ID, TopicSettings(cleanup_policy=frozenset({"compact"})))
    append(partition_log, 10)
    partition_log.roll()
    path = partition_log.segments[0].path
    data = bytearray(path.read_bytes())
    data[16] = 1  # a magic of old
    path.write_bytes(bytes(data))
    await upkeep.clean()
    await upkeep.clean()
    assert caplog.messages.count("log cannot be compacted until the next start") == 1


async def test_failing_work_is_told_and_tried_again(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    settings = BrokerSettings(log_cleaner_backoff_ms=1)
    store = stores.open(settings=settings)
    partition_log = store.create("orders", 0, TOPIC_ID, TopicSettings(cleanup_policy=frozenset({"compact"})))
    append(partition_log, 10)
    partition_log.roll()
    calls = 0
    tried_again = asyncio.Event()

    def fails_first(found: PartitionLog) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("no idea")
        tried_again.set()
        return found.end_offset

    store.high_watermark_of = fails_first
    running = asyncio.create_task(store.run())
    async with asyncio.timeout(10):
        await tried_again.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert "background work failed and will be retried" in caplog.messages


async def test_close_after_run_leaves_everything_in_order(stores: Stores) -> None:
    store = stores.open()
    append(store.create("orders", 0, TOPIC_ID, SETTINGS), 3)
    running = asyncio.create_task(store.run())
    await asyncio.sleep(0)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    stores.close(store)
    assert stores.open().was_clean
