"""Followers copy their leader's log, byte for byte, and give way where the logs differ."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.features import fetch_version
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.producer_state import Origin
from core_broker.protocol.messages.fetch import FetchRequest
from core_broker.protocol.messages.list_offsets import ListOffsetsRequest
from core_broker.protocol.records import Record, build_batch, end_transaction_marker
from core_broker.protocol.stored.metadata import FeatureLevelRecord
from core_broker.service.clock import ManualClock
from tests.support.replica_cluster import TOPIC, ReplicaCluster, append, eventually


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ReplicaCluster]:
    cluster = ReplicaCluster(tmp_path, replica_fetch_wait_max_ms=20, replica_fetch_backoff_ms=5)
    yield cluster
    await cluster.close()


def agree(cluster: ReplicaCluster) -> bool:
    """Whether all replicas have the same log, and know that it is committed."""
    replicas = [cluster[broker_id] for broker_id in cluster.description.replicas]
    leader = cluster.leader
    return all(
        replica.content() == leader.content()
        and replica.partition.high_watermark == leader.partition.log.end_offset
        and replica.partition.log.start_offset == leader.partition.log.start_offset
        for replica in replicas
    )


def advance(cluster: ReplicaCluster, milliseconds: int) -> None:
    assert isinstance(cluster.clock, ManualClock)
    cluster.clock.advance(milliseconds)


async def test_followers_copy_the_log_byte_for_byte_and_commit_it(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.start()
    append(cluster[1], b"a", b"b", acks_all=True)
    last = append(cluster[1], b"c", acks_all=True)
    assert cluster[1].partition.high_watermark == 0
    await cluster[1].partition.wait_committed(last, timeout_ms=10_000)
    await eventually(lambda: agree(cluster))
    assert [offset for offset, _, _ in cluster[3].content()] == [0, 2]
    append(cluster[1], b"d", acks_all=True)
    await eventually(lambda: agree(cluster))


@pytest.mark.parametrize("level", [7, 9, 10, 19, 21, 25, 27, 29, 30])
async def test_followers_send_what_the_finalised_level_means(cluster: ReplicaCluster, level: int) -> None:
    cluster.commit(FeatureLevelRecord("metadata.version", level))
    cluster.create_topic((1, 2))
    cluster.change(isr=(1,))
    cluster.start()
    append(cluster[1], b"a")
    await eventually(lambda: agree(cluster) and cluster.description.isr == (1, 2))
    assert cluster.versions[FetchRequest] == {fetch_version(level)}


async def test_followers_take_up_another_level_while_they_fetch(cluster: ReplicaCluster) -> None:
    cluster.commit(FeatureLevelRecord("metadata.version", 25))
    cluster.create_topic((1, 2))
    cluster.start()
    append(cluster[1], b"a")
    await eventually(lambda: agree(cluster))
    assert cluster.versions[FetchRequest] == {17}
    cluster.commit(FeatureLevelRecord("metadata.version", 30))
    await eventually(lambda: cluster.versions[FetchRequest] == {17, 18})
    append(cluster[1], b"b")
    await eventually(lambda: agree(cluster))


@pytest.mark.parametrize("level,version", [(7, 7), (25, 10), (30, 11)])
async def test_a_follower_that_is_behind_the_log_asks_for_its_start_as_the_level_wants(
    cluster: ReplicaCluster, level: int, version: int
) -> None:
    cluster.commit(FeatureLevelRecord("metadata.version", level))
    cluster.create_topic((1, 2))
    cluster.change(isr=(1,))
    advance(cluster, 60_000)
    for _ in range(3):
        append(cluster[1], b"old", acks_all=True)
    cluster[1].partition.delete_records_before(2)
    cluster.start()
    await eventually(lambda: agree(cluster))
    assert cluster.versions[ListOffsetsRequest] == {version}


async def test_a_broker_that_stops_can_still_be_told_of_a_new_leader(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.start()
    append(cluster[1], b"a")
    await eventually(lambda: agree(cluster))
    await cluster[3].stop()
    cluster.change(leader=2, isr=(1, 2, 3))
    assert cluster[3].partition.leader_id == 2


async def test_a_follower_of_a_compacted_log_takes_over_the_gaps(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    for base in (0, 5, 11):
        batch = build_batch([Record(timestamp=1, value=b"v")], base_offset=base)
        cluster[1].partition.log.append_as_follower(batch)
    cluster.start()
    await eventually(lambda: [offset for offset, _, _ in cluster[2].content()] == [0, 5, 11])


async def test_kip_101_records_of_a_lost_leader_that_were_not_committed_give_way(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    append(cluster[1], b"of the first leader")
    cluster.change(leader=2, isr=(1, 2, 3))
    append(cluster[2], b"of the second leader")
    cluster.start()
    await eventually(lambda: agree(cluster))
    ((_, epoch, batch),) = cluster[1].content()
    assert epoch == 1
    assert b"second" in batch


async def test_kip_101_a_restart_before_the_high_watermark_is_known_loses_nothing(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.start()
    append(cluster[1], b"acknowledged", acks_all=True)
    await eventually(lambda: cluster[1].partition.high_watermark == 1)
    await cluster.crash(2)
    assert cluster[2].partition.high_watermark == 0, "the checkpoint is older than the acknowledgement"
    cluster.fence(2, fenced=False)
    cluster.change(leader=2, isr=(2,))
    await cluster[1].stop()
    assert len(cluster[2].content()) == 1


async def test_kip_279_two_quick_elections_leave_no_fork(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    append(cluster[1], b"epoch 0, only on broker 1")
    cluster.change(leader=2)
    append(cluster[2], b"epoch 1, only on broker 2")
    append(cluster[2], b"epoch 1, too")
    cluster.change(leader=1)
    append(cluster[1], b"epoch 2")
    cluster.start()
    await eventually(lambda: agree(cluster))
    assert [epoch for _, epoch, _ in cluster[2].content()] == [0, 2]


async def test_kafka_7164_a_follower_truncates_after_every_epoch_that_it_missed(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    for number in range(6):
        leader = 1 + number % 2
        cluster.change(leader=leader)
        append(cluster[leader], b"epoch %d" % (number + 1))
    cluster.change(leader=3)
    append(cluster[3], b"the only one that counts")
    cluster.start()
    await eventually(lambda: agree(cluster))
    assert len(cluster[1].content()) == 1


async def test_kafka_9491_a_log_truncated_below_the_high_watermark_lowers_it(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2, 3))
    cluster.change(leader=2, isr=(2,))
    append(cluster[2], b"committed by broker 2 alone", acks_all=True)
    assert cluster[2].partition.high_watermark == 1
    cluster.change(leader=1, isr=(1,), recovery=1)  # unclean: broker 1 has nothing
    cluster.start()
    await eventually(lambda: cluster[2].partition.log.end_offset == 0)
    assert cluster[2].partition.high_watermark == 0
    append(cluster[1], b"new")
    await eventually(lambda: agree(cluster))


async def test_kafka_12996_a_follower_before_the_leaders_start_begins_there(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.cut = {2}
    cluster.start()
    cluster.change(isr=(1,))
    advance(cluster, 60_000)
    for _ in range(3):
        append(cluster[1], b"old", acks_all=True)
    cluster[1].partition.delete_records_before(2)
    cluster.cut = set()
    await eventually(lambda: agree(cluster))
    assert cluster[2].partition.log.start_offset == 2


async def test_a_start_in_the_middle_of_a_batch_is_copied_with_the_whole_batch(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.change(isr=(1,))
    advance(cluster, 60_000)
    append(cluster[1], b"0", b"1", b"2", b"3", acks_all=True)
    cluster[1].partition.delete_records_before(2)
    cluster.start()
    await eventually(lambda: agree(cluster))
    assert cluster[2].partition.log.start_offset == 2
    assert [offset for offset, _, _ in cluster[2].content()] == [0]


async def test_a_follower_beyond_the_leaders_end_truncates_to_it(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    for number in range(3):  # without epochs, as after a damaged checkpoint: nothing tells where the logs diverge
        batch = build_batch([Record(timestamp=1, value=b"v")], base_offset=number)
        cluster[2].partition.log.append_as_follower(batch)
    append(cluster[1], b"v")
    cluster.start()
    await eventually(lambda: cluster[2].partition.log.end_offset == 1)


async def test_deleted_records_are_deleted_by_followers_too(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.start()
    for _ in range(3):
        append(cluster[1], b"v", acks_all=True)
    await eventually(lambda: agree(cluster))
    cluster[1].partition.delete_records_before(2)
    assert await cluster[1].partition.wait_deleted(2, timeout_ms=10_000) == 2
    assert cluster[2].partition.log.start_offset == cluster[3].partition.log.start_offset == 2


async def test_kafka_14704_truncation_comes_before_the_leaders_high_watermark(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    append(cluster[1], b"a")
    append(cluster[1], b"b")
    cluster.change(leader=2, isr=(2, 3))
    cluster[2].start()
    cluster[3].start()
    append(cluster[2], b"c")
    append(cluster[2], b"d")
    await eventually(lambda: cluster[2].partition.high_watermark == 2)
    cluster.gates = []
    cluster[1].start()
    own = cluster[1].partition
    while own.log.epochs.epoch_for_offset(0) != 1:
        assert own.high_watermark == 0, "the record at offset 0 is another one than the leader committed"
        await eventually(lambda: bool(cluster.gates))
        cluster.gates.pop(0).set_result(True)
        await asyncio.sleep(0)
    gates, cluster.gates = cluster.gates, None
    for gate in gates:
        gate.set_result(True)
    await eventually(lambda: agree(cluster))


async def test_kafka_13207_the_answer_for_a_removed_partition_truncates_nothing(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    append(cluster[1], b"a")
    cluster.change(leader=2)
    append(cluster[2], b"b")
    cluster.gates = []
    cluster[1].start()
    await eventually(lambda: bool(cluster.gates))
    cluster.gates.pop().set_result(True)
    await eventually(lambda: bool(cluster.gates))
    answer, removed = cluster.gates.pop(), cluster[1].partition
    cluster[1].fetchers.forget(removed)
    answer.set_result(True)
    source = cluster[1].fetchers._sources[2]
    await eventually(lambda: source._session_epoch == 1)
    assert removed.log.end_offset == 1


async def test_kafka_6859_a_follower_without_epochs_is_not_compared(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    append(cluster[1], b"a")
    assert cluster[2].partition.next_fetch().last_epoch == -1
    cluster.start()
    await eventually(lambda: agree(cluster))


async def test_kafka_18991_an_answer_of_an_earlier_epoch_is_ignored(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.gates = []
    cluster[2].start()
    append(cluster[1], b"never committed")
    await eventually(lambda: bool(cluster.gates))
    assert cluster.gates is not None
    cluster.gates.pop().set_result(True)
    await eventually(lambda: bool(cluster.gates))
    answer = cluster.gates.pop()
    cluster.change(leader=3, replicas=(1, 2, 3), isr=(1, 2, 3))
    answer.set_result(True)
    await eventually(lambda: bool(cluster.gates))
    assert cluster[2].partition.log.end_offset == 0
    cluster.gates = None


async def test_the_session_begins_again_when_the_leader_has_forgotten_it(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.start()
    append(cluster[1], b"a", acks_all=True)
    await eventually(lambda: agree(cluster))
    cluster[1].services.fetch_sessions._sessions.clear()
    append(cluster[1], b"b", acks_all=True)
    await eventually(lambda: agree(cluster))


async def test_a_leader_without_room_for_sessions_gets_full_requests(tmp_path: Path) -> None:
    cluster = ReplicaCluster(tmp_path, replica_fetch_wait_max_ms=20, replica_fetch_backoff_ms=5)
    for broker in cluster.brokers.values():
        broker.services.fetch_sessions._slots_max = 0
    cluster.create_topic((1, 2))
    cluster.start()
    for _ in range(3):
        append(cluster[1], b"a", acks_all=True)
        await eventually(lambda: agree(cluster))
    await cluster.close()


async def test_an_unreachable_leader_is_fetched_from_again_when_it_is_back(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.cut = {1}
    cluster.start()
    append(cluster[1], b"a")
    await eventually(lambda: cluster.messages[2, 1] > 1)
    assert cluster[2].content() == []
    cluster.cut = set()
    await eventually(lambda: agree(cluster))


async def test_an_error_of_one_partition_delays_only_that_one(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.start()
    append(cluster[1], b"a", acks_all=True)
    await eventually(lambda: agree(cluster))
    # The follower hears of the next epoch before the leader: it waits, and does not truncate.
    cluster.is_manual = True
    cluster.change(leader=1)
    cluster[2].apply_all()
    await eventually(lambda: bool(cluster[2].fetchers._sources[1]._delayed))
    assert len(cluster[2].content()) == 1
    cluster[1].apply_all()
    append(cluster[1], b"b")

    def agree_after_a_while() -> bool:
        advance(cluster, 10)
        return agree(cluster)

    await eventually(agree_after_a_while)


async def test_a_disk_error_stops_the_partition_until_the_next_leader(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster[2].partition.log._fail(OSError("disk is gone"))
    cluster.start()
    append(cluster[1], b"a")
    await eventually(lambda: not cluster[2].fetchers._sources[1]._partitions)
    assert cluster[2].content() == []
    assert cluster[1].partition.high_watermark == 0


async def test_the_reassigned_replica_catches_up_and_joins(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    cluster.start()
    append(cluster[1], b"a", acks_all=True)
    cluster.change(replicas=(1, 2, 3))
    await eventually(lambda: cluster.description.isr == (1, 2, 3))
    await eventually(lambda: agree(cluster))
    cluster.change(replicas=(2, 3), isr=(2, 3), leader=2)
    await eventually(lambda: agree(cluster))
    assert cluster[1].partitions.find(TOPIC, 0) is None
    assert not (cluster[1].path / f"{TOPIC}-0").exists()


async def test_open_transactions_are_known_to_the_next_leader(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    cluster.start()
    batch = build_batch(
        [Record(timestamp=1, value=b"t")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    cluster[1].partition.append(batch, acks_all=True)
    await eventually(lambda: agree(cluster))
    cluster.change(leader=2)
    assert cluster[2].partition.last_stable_offset == 0
    marker = end_transaction_marker(7, 0, commit=True, coordinator_epoch=0, timestamp_ms=1)
    cluster[2].partition.append(marker, acks_all=True, origin=Origin.COORDINATOR)
    assert cluster[2].partition.last_stable_offset == 0, "the marker is not committed yet"
    await eventually(lambda: agree(cluster))
    assert cluster[2].partition.last_stable_offset == 2


async def test_losing_the_leadership_fails_the_writes_that_wait(cluster: ReplicaCluster) -> None:
    cluster.create_topic()
    last = append(cluster[1], b"a", acks_all=True)
    waiting = asyncio.create_task(cluster[1].partition.wait_committed(last, timeout_ms=10_000))
    await asyncio.sleep(0)
    cluster.change(leader=2)
    with pytest.raises(BrokerError) as failed:
        await waiting
    assert failed.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(BrokerError):
        append(cluster[1], b"b")


async def test_kafka_18991_an_answer_of_the_same_leader_in_its_earlier_epoch_is_ignored(
    cluster: ReplicaCluster,
) -> None:
    cluster.create_topic((1, 2))
    cluster.gates = []
    cluster[2].start()
    append(cluster[1], b"a")
    await eventually(lambda: bool(cluster.gates))
    cluster.gates.pop().set_result(True)
    await eventually(lambda: bool(cluster.gates))
    answer = cluster.gates.pop()
    cluster.change(leader=1)
    answer.set_result(True)
    await eventually(lambda: bool(cluster.gates))
    assert cluster[2].partition.log.end_offset == 0
    gates, cluster.gates = cluster.gates, None
    for gate in gates:
        gate.set_result(True)
    await eventually(lambda: agree(cluster))


async def test_a_follower_learns_the_high_watermark_again_after_it_ignored_it(cluster: ReplicaCluster) -> None:
    cluster.create_topic((1, 2))
    append(cluster[1], b"a")
    cluster.change(leader=2)
    cluster.change(leader=1)
    records = cluster[1].content()[0][2]
    cluster[2].partition.log.append_as_follower(records)
    append(cluster[1], b"b")
    cluster[2].partition.log.append_as_follower(cluster[1].content()[1][2])
    cluster.start()
    await eventually(lambda: agree(cluster))
    cluster.change(leader=1)
    await eventually(lambda: agree(cluster))
