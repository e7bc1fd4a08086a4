"""A follower asks for throttled partitions only while its quota has room (KIP-73)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.metadata import ResourceType
from core_broker.protocol.stored.metadata import ConfigRecord, PartitionRecord
from core_broker.service.clock import ManualClock
from tests.support.replica_cluster import TOPIC, TOPIC_ID, ReplicaCluster, append, eventually

RATE = "follower.replication.throttled.rate"
VALUE = bytes(1000)
BATCHES = 10
WINDOW_MS = 11_000


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ReplicaCluster]:
    """Broker 2 follows two partitions: the first, where it is outside the ISR, is throttled there.

    It waits a minute for new records of the second; that must not delay the first.
    """
    cluster = ReplicaCluster(
        tmp_path,
        brokers=(1, 2),
        replica_fetch_wait_max_ms=60_000,
        replica_fetch_backoff_ms=5,
        replica_fetch_max_bytes=1,
    )
    cluster.create_topic((1,), follower_replication_throttled_replicas="0:2")
    for _ in range(BATCHES):
        append(cluster[1], VALUE)
    cluster.commit(ConfigRecord(ResourceType.BROKER, "2", RATE, "100"))
    cluster.change(replicas=(1, 2))
    cluster.commit(
        PartitionRecord(
            partition_id=1, topic_id=TOPIC_ID, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=0, partition_epoch=0
        )
    )
    yield cluster
    await cluster.close()


def advance(cluster: ReplicaCluster, milliseconds: int) -> None:
    assert isinstance(cluster.clock, ManualClock)
    cluster.clock.advance(milliseconds)


def end(cluster: ReplicaCluster, index: int = 0) -> int:
    found = cluster[2].partitions.find(TOPIC, index)
    assert found is not None
    return found.log.end_offset


def append_to_other(cluster: ReplicaCluster) -> None:
    other = cluster[1].partitions.find(TOPIC, 1)
    assert other is not None
    other.append(bytearray(cluster[1].content()[0][2]), acks_all=False)


async def test_a_throttled_partition_is_fetched_whenever_there_is_room(cluster: ReplicaCluster) -> None:
    cluster.start()
    for copied in range(1, BATCHES):  # a batch is ten times what is allowed in a second
        await eventually(lambda copied=copied: end(cluster) == copied)  # type: ignore[misc] # mypy cannot infer it
        for _ in range(20):
            await asyncio.sleep(0)
        assert end(cluster) == copied
        advance(cluster, WINDOW_MS)
    await eventually(lambda: cluster.description.isr == (1, 2))


async def test_the_other_partitions_are_copied_meanwhile(cluster: ReplicaCluster) -> None:
    cluster.start()
    await eventually(lambda: end(cluster) == 1)
    for copied in range(1, 20):
        append_to_other(cluster)
        await eventually(lambda copied=copied: end(cluster, 1) == copied)  # type: ignore[misc] # mypy cannot infer it
    assert end(cluster) == 1


async def test_without_the_throttle_it_is_copied_to_the_end(cluster: ReplicaCluster) -> None:
    cluster.start()
    await eventually(lambda: end(cluster) == 1)
    advance(cluster, 5)
    cluster.commit(ConfigRecord(ResourceType.BROKER, "2", RATE, None))
    await eventually(lambda: end(cluster) == BATCHES)


async def test_a_partition_that_is_no_longer_listed_is_copied_to_the_end(cluster: ReplicaCluster) -> None:
    cluster.start()
    await eventually(lambda: end(cluster) == 1)
    key = "follower.replication.throttled.replicas"
    cluster.commit(ConfigRecord(ResourceType.TOPIC, TOPIC, key, "0:1,1:2"))
    advance(cluster, 5)
    await eventually(lambda: end(cluster) == BATCHES)


async def test_a_replica_in_sync_is_never_throttled(cluster: ReplicaCluster) -> None:
    cluster.change(isr=(1, 2))
    cluster.start()
    await eventually(lambda: end(cluster) == BATCHES)


async def test_a_replica_that_has_caught_up_joins_the_isr_although_the_quota_is_used_up(
    cluster: ReplicaCluster,
) -> None:
    cluster[1].partition.delete_records_before(BATCHES - 1)
    cluster.start()
    await eventually(lambda: end(cluster) == BATCHES)
    assert cluster[2].partitions.throttles.follower.is_used_up(cluster.clock.monotonic())
    await eventually(lambda: cluster.description.isr == (1, 2))
    for _ in range(5):
        append(cluster[1], VALUE)
    await eventually(lambda: end(cluster) == BATCHES + 5)
