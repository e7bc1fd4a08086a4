"""A partition as its leader sees it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from core_broker.cluster.metadata import PartitionImage
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.partition_log import PartitionLog
from core_broker.metrics import TopicTraffic
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import ManualClock
from core_broker.settings import TopicSettings

NOW_MS = 1_700_000_000_000
LOCAL_ID = 1
IMAGE = PartitionImage(replicas=(1, 2, 3), isr=(1,), leader_id=LOCAL_ID, leader_epoch=5, partition_epoch=9)


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    clock = ManualClock(NOW_MS)
    log = PartitionLog.open(tmp_path / "orders-0", topic="orders", partition=0, settings=TopicSettings(), clock=clock)
    yield Partition(log, IMAGE, topic_id=bytes(16), local_id=LOCAL_ID, clock=clock, traffic=TopicTraffic())
    log.close()


def batch(count: int = 1) -> bytearray:
    return build_batch([Record(timestamp=NOW_MS, value=b"v") for _ in range(count)])


def test_the_high_watermark_follows_the_log_when_we_are_alone_in_sync(partition: Partition) -> None:
    result = partition.append(batch(3), acks_all=True)
    assert (result.first_offset, partition.high_watermark, partition.last_stable_offset) == (0, 3, 3)


def test_the_batch_carries_our_leader_epoch(partition: Partition) -> None:
    partition.append(batch(), acks_all=True)
    ((header, _),) = partition.log.read_batches(0, 1)
    assert header.leader_epoch == 5
    assert partition.log.epochs.end_offset_for(5, 1) == (5, 1)


def test_acks_all_is_refused_while_too_few_replicas_are_in_sync(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    with pytest.raises(BrokerError) as refused:
        partition.append(batch(), acks_all=True)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.end_offset == 0


def test_below_the_minimum_nothing_becomes_readable(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    partition.append(batch(), acks_all=False)
    assert (partition.log.end_offset, partition.high_watermark) == (1, 0)
    partition.update(msgspec.structs.replace(IMAGE, isr=(1, 2), partition_epoch=10))
    assert partition.high_watermark == 0, "broker 2 has not fetched the record yet"
    partition.follower_fetched(2, 1, log_start=0, broker_epoch=-1)
    assert partition.high_watermark == 1


def test_a_lower_minimum_makes_readable_what_waited_for_it(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    partition.append(batch(), acks_all=False)
    assert partition.high_watermark == 0
    partition.configure(TopicSettings(min_insync_replicas=1))
    assert partition.high_watermark == 1


def test_a_topic_never_needs_more_replicas_than_it_has(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    partition.update(msgspec.structs.replace(IMAGE, replicas=(1,)))
    partition.append(batch(), acks_all=True)
    assert partition.high_watermark == 1


async def test_waiting_for_a_commit_ends_with_it_or_with_the_time(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    partition.append(batch(), acks_all=False)
    with pytest.raises(BrokerError) as late:
        await partition.wait_committed(0, timeout_ms=1)
    assert late.value.code is ErrorCode.REQUEST_TIMED_OUT
    waiting = asyncio.create_task(partition.wait_committed(0, timeout_ms=10_000))
    await asyncio.sleep(0)
    partition.update(msgspec.structs.replace(IMAGE, isr=(1, 2)))
    partition.follower_fetched(2, 1, log_start=0, broker_epoch=-1)
    await asyncio.wait_for(waiting, 10)


async def test_writes_that_wait_fail_when_the_partition_is_removed(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    partition.append(batch(), acks_all=False)
    waiting = asyncio.create_task(partition.wait_committed(0, timeout_ms=10_000))
    await asyncio.sleep(0)
    partition.retire()
    with pytest.raises(BrokerError) as failed:
        await waiting
    assert failed.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(BrokerError):
        partition.append(batch(), acks_all=True)


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_kip_320_clients_of_another_leadership_are_told(
    partition: Partition, epoch: int, code: ErrorCode | None
) -> None:
    if code is None:
        partition.check_leader_epoch(epoch)
        return
    with pytest.raises(BrokerError) as refused:
        partition.check_leader_epoch(epoch)
    assert refused.value.code is code


def test_records_above_the_high_watermark_cannot_be_deleted(partition: Partition) -> None:
    partition.append(batch(3), acks_all=True)
    with pytest.raises(BrokerError) as refused:
        partition.delete_records_before(4)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.delete_records_before(-1) == 3


def test_an_announced_epoch_reaches_the_disk_with_its_first_batch(partition: Partition, tmp_path: Path) -> None:
    checkpoint = tmp_path / "orders-0" / "leader-epoch-checkpoint"
    assert not checkpoint.exists()
    partition.append(batch(), acks_all=True)
    assert checkpoint.read_text().splitlines() == ["0", "1", "5 0"]


# --- several replicas -------------------------------------------------------------------------------------------------

FOLLOWER = msgspec.structs.replace(IMAGE, leader_id=2, leader_epoch=6, partition_epoch=10)
IN_SYNC = msgspec.structs.replace(IMAGE, isr=(1, 2), partition_epoch=10)


def reopened(partition: Partition, image: PartitionImage, *, high_watermark: int) -> Partition:
    return Partition(
        partition.log,
        image,
        topic_id=bytes(16),
        local_id=LOCAL_ID,
        clock=partition.clock,
        traffic=TopicTraffic(),
        high_watermark=high_watermark,
    )


@pytest.mark.parametrize(("checkpoint", "expected"), [(0, 1), (2, 2), (9, 3), (-1, 1)])
def test_kafka_3978_the_high_watermark_begins_at_the_checkpoint_within_the_log(
    partition: Partition, checkpoint: int, expected: int
) -> None:
    partition.append(batch(3), acks_all=True)
    partition.delete_records_before(1)
    for image in (FOLLOWER, IN_SYNC):
        assert reopened(partition, image, high_watermark=checkpoint).high_watermark == expected


def test_with_one_replica_everything_in_the_log_is_committed(partition: Partition) -> None:
    partition.append(batch(3), acks_all=True)
    alone = msgspec.structs.replace(IMAGE, replicas=(1,))
    assert reopened(partition, alone, high_watermark=0).high_watermark == 3


def test_kafka_7415_a_new_leader_knows_the_start_of_its_epoch_before_it_appends(partition: Partition) -> None:
    partition.append(batch(2), acks_all=True)
    partition.update(msgspec.structs.replace(IMAGE, leader_epoch=7, partition_epoch=11))
    assert partition.epoch_start == 2
    assert partition.end_offset_for_epoch(7) == (7, 2)
    assert partition.end_offset_for_epoch(5) == (5, 2)


async def test_a_write_of_an_earlier_leadership_is_not_acknowledged_by_the_next(partition: Partition) -> None:
    partition.append(batch(), acks_all=True)
    partition.update(FOLLOWER)
    partition.update(msgspec.structs.replace(IMAGE, leader_epoch=7, partition_epoch=11))
    assert partition.is_committed(0)
    with pytest.raises(BrokerError) as failed:
        await partition.wait_committed(0, timeout_ms=1000, leader_epoch=5)
    assert failed.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_takes_no_appends(partition: Partition) -> None:
    partition.update(FOLLOWER)
    with pytest.raises(BrokerError) as refused:
        partition.append(batch(), acks_all=False)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_producer_learns_that_too_few_replicas_are_left_after_the_append(partition: Partition) -> None:
    partition.configure(TopicSettings(min_insync_replicas=2))
    partition.update(IN_SYNC)
    partition.append(batch(), acks_all=True)
    partition.follower_fetched(2, 1, log_start=0, broker_epoch=-1)
    partition.check_min_isr_after_append()
    partition.update(msgspec.structs.replace(IMAGE, isr=(1,), partition_epoch=11))
    with pytest.raises(BrokerError) as refused:
        partition.check_min_isr_after_append()
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_kafka_13091_the_answer_of_the_controller_raises_the_high_watermark(partition: Partition) -> None:
    partition.update(IN_SYNC)
    partition.append(batch(), acks_all=True)
    clock = partition.clock
    assert isinstance(clock, ManualClock)
    clock.advance(60_000)
    partition.check_isr()
    assert partition.replication is not None
    proposal = partition.replication.proposal
    assert proposal is not None
    assert (proposal.isr, partition.high_watermark) == ((1,), 0)
    partition.isr_answered(proposal, ErrorCode.NONE, msgspec.structs.replace(IN_SYNC, isr=(1,), partition_epoch=11))
    assert (partition.isr, partition.high_watermark) == ((1,), 1)
    partition.update(IN_SYNC)
    assert partition.isr == (1,), "the metadata log is behind the answer"


def test_kafka_8333_another_role_does_not_begin_at_the_checkpoint_again(partition: Partition) -> None:
    partition.append(batch(3), acks_all=False)
    assert partition.high_watermark == 3
    for epoch, leader_id in enumerate((2, LOCAL_ID, 3), 6):
        partition.update(msgspec.structs.replace(IN_SYNC, leader_epoch=epoch, leader_id=leader_id))
        assert partition.high_watermark == 3


def test_a_follower_keeps_the_high_watermark_of_the_leader_before(partition: Partition) -> None:
    partition.update(FOLLOWER)
    records = build_batch([Record(timestamp=NOW_MS, value=b"v")] * 3)
    partition.replicate(bytes(records), high_watermark=2, log_start=0)
    assert partition.high_watermark == 2
    partition.replicate(b"", high_watermark=1, log_start=0)
    assert partition.high_watermark == 2
    partition.replicate(b"", high_watermark=9, log_start=1)
    assert (partition.high_watermark, partition.log.start_offset) == (3, 1)
