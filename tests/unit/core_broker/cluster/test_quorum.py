import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.metadata_log import MetadataLog
from core_broker.cluster.metadata_records import encode_record
from core_broker.cluster.quorum import MetadataLostError, MetadataQuorum
from core_broker.cluster.snapshots import list_snapshots, write_snapshot
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import Origin
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.records import Record, build_batch, control_type, parse_batches, read_records
from core_broker.protocol.stored.control import LeaderChangeMessage
from core_broker.protocol.stored.metadata import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from core_broker.raft.voters import VoterSet
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings


def make(path: Path, between_snapshots: int = 1 << 20) -> MetadataQuorum:
    settings = BrokerSettings(node_id=5, metadata_log_max_record_bytes_between_snapshots=between_snapshots)
    return MetadataQuorum(path, cluster_id="c", settings=settings, clock=ManualClock(1_000))


async def restarted(quorum: MetadataQuorum, between_snapshots: int = 1 << 20) -> MetadataQuorum:
    await quorum.close()
    return started(quorum.directory.parent, between_snapshots=between_snapshots)


def started(path: Path, between_snapshots: int = 1 << 20) -> MetadataQuorum:
    quorum = make(path, between_snapshots=between_snapshots)
    quorum.start()
    return quorum


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"topic-{number}", number.to_bytes(16, "big"))


def log_files(quorum: MetadataQuorum) -> list[Path]:
    return sorted(quorum.directory.glob("*.log"))


async def test_a_record_is_visible_once_append_returns(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    offset = await quorum.append([topic(1), topic(2)])
    assert list(quorum.image.topics) == ["topic-1", "topic-2"]
    # Before them: LeaderChange, KRaftVersion, Voters.
    assert (offset, quorum.committed_offset, quorum.high_watermark) == (3, 4, 5)
    await quorum.close()


def versions_in(batches: bytes) -> list[tuple[int, int]]:
    """The kind and the version of each metadata record in some batches."""
    data = [header for header in parse_batches(batches) if not header.is_control]
    values = [record.value or b"" for header in data for record in read_records(batches, header)]
    return [(value[1], value[2]) for value in values]


async def test_records_and_snapshots_are_written_as_the_finalised_level_wants_them(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    broker = RegisterBrokerRecord(broker_id=1, broker_epoch=4, rack=None, log_dirs=[b"d" * 16])
    await quorum.append([FeatureLevelRecord("metadata.version", 25), broker])
    await quorum.append([broker])
    await quorum.append([FeatureLevelRecord("metadata.version", 30)])
    await quorum.append([broker])
    assert versions_in(quorum.log.read(0)) == [(12, 0), (0, 3), (0, 3), (12, 0), (0, 4)]
    await quorum.close()
    image = quorum.image
    lower = msgspec.structs.replace(image, offset=image.offset + 1, features={"metadata.version": 25})
    for state, version in ((image, 4), (lower, 3)):
        written = write_snapshot(tmp_path, state, voters=None, timestamp_ms=0)
        assert versions_in((tmp_path / written.file_name).read_bytes()) == [(12, 0), (0, version)]


async def test_committed_records_survive_a_restart(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    image = quorum.image
    again = await restarted(quorum)
    assert again.image.topics == image.topics
    await again.close()


async def test_committed_records_survive_a_crash(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    await quorum.append([topic(2)])
    crashed = started(tmp_path)
    assert list(crashed.image.topics) == ["topic-1", "topic-2"]
    await crashed.close()


async def test_each_start_begins_a_new_epoch_with_a_leader_change(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    assert (quorum.leader_epoch, quorum.leader_id) == (1, 5)
    quorum = await restarted(quorum)
    assert quorum.leader_epoch == 2
    log = PartitionLog.open(
        quorum.directory, topic="m", partition=0, settings=quorum.log.log.settings, clock=ManualClock()
    )
    (header, batch) = list(log.read_batches(0, 100))[-1]
    (record,) = read_records(batch, header)
    assert header.is_control
    assert header.leader_epoch == 2
    assert control_type(record) == 2
    assert decode(LeaderChangeMessage, 0, record.value or b"").leader_id == 5
    await quorum.close()


async def test_the_vote_file_is_kafkas_json(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    stored = json.loads((quorum.directory / "quorum-state").read_text())
    assert stored == {
        "leaderId": 5,
        "leaderEpoch": 1,
        "votedId": 5,
        "votedDirectoryId": "A" * 22,
        "data_version": 1,
    }
    await quorum.close()


async def test_a_damaged_vote_file_does_not_lead_to_an_old_epoch(tmp_path: Path) -> None:
    quorum = await restarted(started(tmp_path))
    (quorum.directory / "quorum-state").write_bytes(b"{")
    assert (await restarted(quorum)).leader_epoch == 3


async def test_a_torn_tail_is_cut_and_the_rest_kept(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    with log_files(quorum)[-1].open("ab") as file:
        file.truncate(quorum.log.log.size_bytes)
    with log_files(quorum)[-1].open("ab") as file:
        file.write(b"\0\0\0\0\0\0\0\7half a batch")
    again = started(tmp_path)
    assert list(again.image.topics) == ["topic-1"]
    await again.append([topic(2)])
    assert len(again.image.topics) == 2
    await again.close()


async def test_a_sync_that_covers_later_records_commits_them_too(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    with quorum.log.log._flush_lock:  # the first sync waits, and then finds the records of both
        first, second = quorum.propose([topic(1)]), quorum.propose([topic(2)])
    async with asyncio.timeout(60):
        await asyncio.gather(first, second)
    await quorum.close()


async def test_records_that_a_killed_process_left_behind_are_synced_before_they_count(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    quorum.log.append(quorum.leader_epoch, [encode_record(topic(1), 30)])  # written, but not synced
    assert quorum.log.log.recovery_point < quorum.end_offset
    again = make(tmp_path)
    settings = BrokerSettings(node_id=5)
    log = MetadataLog(
        again.directory,
        cluster_id="c",
        local=again.local,
        initial_voters=VoterSet([again.local]),
        is_static=False,
        settings=settings,
        clock=ManualClock(1_000),
    )
    log.open()
    assert log.log.recovery_point == log.end_offset == quorum.end_offset
    log.close()


async def test_listeners_hear_of_each_batch_in_order_with_the_image_that_contains_it(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    heard: list[tuple[int, Sequence[Message]]] = []

    def listen(image: MetadataImage, records: Sequence[Message]) -> None:
        heard.append((len(image.topics), records))

    quorum.subscribe(listen)
    await asyncio.gather(*(quorum.append([topic(number)]) for number in range(10)))
    assert heard == [(number + 1, [topic(number)]) for number in range(10)]
    await quorum.close()


async def test_a_failing_listener_fails_its_request_and_nothing_else(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    heard: list[int] = []

    def fail(image: MetadataImage, records: Sequence[Message]) -> None:
        if len(image.topics) == 1:
            raise OSError("disk full")

    quorum.subscribe(fail)
    quorum.subscribe(lambda image, _: heard.append(len(image.topics)))
    with pytest.raises(OSError, match="disk full"):
        await quorum.append([topic(1)])
    await quorum.append([topic(2)])
    assert heard == [1, 2]
    await quorum.close()


async def test_records_of_a_cancelled_caller_are_committed_all_the_same(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    caller = asyncio.ensure_future(quorum.append([topic(1)]))
    await asyncio.sleep(0)
    caller.cancel()
    await quorum.close()
    assert list(quorum.image.topics) == ["topic-1"]


async def test_a_disk_that_fails_refuses_every_later_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = started(tmp_path)

    def broken(_descriptor: int) -> None:
        raise OSError("I/O error")

    monkeypatch.setattr("os.fdatasync", broken)
    monkeypatch.setattr("os.fsync", broken)
    for _ in range(2):
        with pytest.raises(BrokerError, match="I/O error") as refusal:
            await quorum.append([topic(1)])
        assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert quorum.image.topics == {}


async def test_a_clean_stop_leaves_a_snapshot_from_which_the_next_start_goes_on(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    await quorum.close()
    assert list_snapshots(quorum.directory) == [(4, 1)]
    for path in log_files(quorum):
        path.unlink()
    again = started(tmp_path)
    assert list(again.image.topics) == ["topic-1"]
    assert (await again.append([topic(2)])) == 5
    assert list((await restarted(again)).image.topics) == ["topic-1", "topic-2"]


async def test_snapshots_keep_the_log_and_the_folder_small(tmp_path: Path) -> None:
    quorum = started(tmp_path, between_snapshots=2_000)
    for number in range(400):
        await quorum.append([ProducerIdsRecord(5, 1, number), ConfigRecord(2, "t", "retention.ms", str(number))])
    image = quorum.image
    await quorum.close()
    assert len(list_snapshots(quorum.directory)) == 2
    assert len(log_files(quorum)) < 5
    assert sum(path.stat().st_size for path in log_files(quorum)) < 10_000
    again = started(tmp_path)
    assert (again.image.next_producer_id, again.image.configs) == (image.next_producer_id, image.configs)
    await again.close()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
async def test_a_damaged_snapshot_is_replaced_by_the_one_before_it(tmp_path: Path, damage: str) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    quorum = await restarted(quorum)
    await quorum.append([topic(2)])
    await quorum.close()
    newest = quorum.directory / list_snapshots(quorum.directory)[-1].file_name
    data = bytearray(newest.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 4
    damaged = {"flip": data, "cut": data[:-60], "empty": bytearray()}
    newest.write_bytes(damaged[damage])
    again = started(tmp_path)
    assert list(again.image.topics) == ["topic-1", "topic-2"]
    await again.close()


async def test_a_half_written_snapshot_is_not_used_and_goes_away(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    part = quorum.directory / "00000000000000000099-0000000001.checkpoint.part"
    part.write_bytes(b"half")
    again = await restarted(quorum)
    assert list(again.image.topics) == ["topic-1"]
    assert not part.exists()
    await again.close()


async def test_a_log_that_begins_beyond_every_snapshot_stops_the_start(tmp_path: Path) -> None:
    quorum = started(tmp_path, between_snapshots=500)
    for number in range(50):
        await quorum.append([topic(number)])
    await quorum.close()
    for snapshot in list_snapshots(quorum.directory):
        (quorum.directory / snapshot.file_name).unlink()
    with pytest.raises(MetadataLostError, match="begins at offset"):
        make(tmp_path).start()


async def test_a_damaged_log_is_replaced_by_the_snapshot(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([topic(1)])
    quorum = await restarted(quorum)
    await quorum.append([topic(2)])
    await quorum.close()
    for path in log_files(quorum):
        data = bytearray(path.read_bytes())
        if data:
            data[len(data) // 2] ^= 4
            path.write_bytes(data)
    again = started(tmp_path)
    assert list(again.image.topics) == ["topic-1", "topic-2"]
    await again.append([topic(3)])
    assert list((await restarted(again)).image.topics) == ["topic-1", "topic-2", "topic-3"]


async def test_a_snapshot_follows_a_change_without_a_stop(tmp_path: Path) -> None:
    quorum = MetadataQuorum(
        tmp_path, cluster_id="c", settings=BrokerSettings(), clock=ManualClock(), second_copy_seconds=0
    )
    quorum.start()
    await quorum.append([topic(1)])
    for _ in range(1000):
        if list_snapshots(quorum.directory):
            break
        await asyncio.sleep(0.01)
    assert list_snapshots(quorum.directory) == [(4, 1)]
    await quorum.close()


async def test_a_record_from_an_unknown_future_version_stops_the_start_and_is_named(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    future = build_batch([Record(timestamp=1, value=b"\x01\x02\x63")])
    quorum.log.log.append(future, leader_epoch=1, origin=Origin.COORDINATOR)
    with pytest.raises(MetadataLostError, match="records 3 to 3 cannot be read: TopicRecord has version 99"):
        make(tmp_path).start()


async def test_a_start_in_the_middle_of_a_transaction_waits_for_its_end(tmp_path: Path) -> None:
    quorum = started(tmp_path)
    await quorum.append([BeginTransactionRecord("t"), topic(1)])
    again = await restarted(quorum)
    assert (again.image.topics, again.has_open_transaction) == ({}, True)
    assert list_snapshots(again.directory) == [], "a snapshot would lack what the transaction holds back"
    await again.append([EndTransactionRecord()])
    crashed = started(tmp_path)
    assert (list(crashed.image.topics), crashed.has_open_transaction) == (["topic-1"], False)
    await crashed.close()
