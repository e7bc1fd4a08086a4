"""What a leader sends to followers of throttled partitions (KIP-73)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.metadata import ResourceType
from core_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from core_broker.protocol.stored.metadata import ConfigRecord, PartitionRecord
from core_broker.service.clock import ManualClock
from tests.support.replica_cluster import TOPIC, TOPIC_ID, ReplicaCluster, append

IN_SYNC, BEHIND = 2, 3
RATE = "leader.replication.throttled.rate"
VALUE = bytes(1000)
WINDOW_MS = 11_000


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ReplicaCluster]:
    """Two partitions led by broker 1; the first, which is throttled there, moves to broker 3."""
    cluster = ReplicaCluster(tmp_path)
    cluster.create_topic((1, 2), leader_replication_throttled_replicas="0:1")
    cluster.change(replicas=(1, 2, 3))
    cluster.commit(
        PartitionRecord(
            partition_id=1,
            topic_id=TOPIC_ID,
            replicas=[1, 2, 3],
            isr=[1, 2, 3],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        )
    )
    limit(cluster, 100)
    for _ in range(10):
        append(cluster[1], VALUE)
    yield cluster
    await cluster.close()


def limit(cluster: ReplicaCluster, rate: int, broker: str = "1") -> None:
    cluster.commit(ConfigRecord(ResourceType.BROKER, broker, RATE, str(rate)))


def advance(cluster: ReplicaCluster, milliseconds: int) -> None:
    assert isinstance(cluster.clock, ManualClock)
    cluster.clock.advance(milliseconds)


async def fetch(cluster: ReplicaCluster, follower: int, offset: int, *, max_wait_ms: int = 0) -> list[int]:
    """How many bytes of each partition the leader sends, one batch of each at most."""
    wanted = [
        FetchPartition(index, 0, offset if index == 0 else 0, log_start_offset=0, partition_max_bytes=1)
        for index in (0, 1)
    ]
    request = FetchRequest(
        replica_state=ReplicaState(follower, -1),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=wanted)],
    )
    response = await cluster[1].handle(request, 18)
    assert isinstance(response, FetchResponse)
    answers = response.responses[0].partitions
    assert [answer.error_code for answer in answers] == [0, 0]
    return [len(answer.records or b"") for answer in answers]


async def test_a_follower_behind_gets_nothing_while_the_quota_is_used_up(cluster: ReplicaCluster) -> None:
    assert (await fetch(cluster, BEHIND, 0))[0] > 1000
    assert (await fetch(cluster, BEHIND, 1))[0] == 0
    advance(cluster, WINDOW_MS)
    assert (await fetch(cluster, BEHIND, 1))[0] > 1000


async def test_a_follower_in_sync_is_never_throttled(cluster: ReplicaCluster) -> None:
    for offset in range(5):
        assert (await fetch(cluster, IN_SYNC, offset))[0] > 1000


async def test_what_in_sync_followers_copy_of_a_listed_partition_counts(cluster: ReplicaCluster) -> None:
    await fetch(cluster, IN_SYNC, 0)
    assert (await fetch(cluster, BEHIND, 0))[0] == 0


async def test_the_other_partitions_of_the_fetch_are_not_held_back(cluster: ReplicaCluster) -> None:
    await fetch(cluster, BEHIND, 0)
    waiting = asyncio.create_task(fetch(cluster, BEHIND, 1, max_wait_ms=60_000))
    await asyncio.sleep(0)
    other = cluster[1].partitions.find(TOPIC, 1)
    assert other is not None
    assert other.replica_readers
    append(cluster[1], VALUE)  # to the throttled partition, which is no reason to answer
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    batch = cluster[1].content()[0][2]
    other.append(bytearray(batch), acks_all=False)
    throttled, sent = await asyncio.wait_for(waiting, 10)
    assert throttled == 0
    assert sent > 1000


async def test_a_throttled_fetch_still_tells_how_far_the_follower_is(cluster: ReplicaCluster) -> None:
    await fetch(cluster, BEHIND, 0)
    assert (await fetch(cluster, BEHIND, 1))[0] == 0
    replication = cluster[1].partition.replication
    assert replication is not None
    assert replication.followers[BEHIND].end_offset == 1


async def test_only_listed_replicas_of_this_broker_count(cluster: ReplicaCluster) -> None:
    key = "leader.replication.throttled.replicas"
    cluster.commit(ConfigRecord(ResourceType.TOPIC, TOPIC, key, "0:2,1:1"))
    for offset in range(5):
        assert (await fetch(cluster, BEHIND, offset))[0] > 1000
    cluster.commit(ConfigRecord(ResourceType.TOPIC, TOPIC, key, "*"))
    await fetch(cluster, BEHIND, 5)
    assert (await fetch(cluster, BEHIND, 6))[0] == 0


async def test_a_rate_for_all_brokers_counts_unless_this_one_has_its_own(cluster: ReplicaCluster) -> None:
    limit(cluster, 10, broker="")
    limit(cluster, 1_000_000)
    for offset in range(5):
        assert (await fetch(cluster, BEHIND, offset))[0] > 1000
    cluster.commit(ConfigRecord(ResourceType.BROKER, "1", RATE, None))
    assert (await fetch(cluster, BEHIND, 5))[0] == 0
    cluster.commit(ConfigRecord(ResourceType.BROKER, "", RATE, None))
    assert (await fetch(cluster, BEHIND, 5))[0] > 1000
