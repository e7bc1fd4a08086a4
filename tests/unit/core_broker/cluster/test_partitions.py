"""The partitions of a broker follow the metadata log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.controller.topics import MorePartitions
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld
from tests.support.replica_cluster import TOPIC, ReplicaCluster, append

NOW_MS = 1_700_000_000_000


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, BrokerSettings(), ManualClock(NOW_MS))
    await world.register()
    yield world
    await world.close()


async def test_a_created_topic_is_hosted_and_announced(world: HandlerWorld) -> None:
    led: list[Partition] = []
    world.partitions.on_leadership.append(led.append)
    topic_id = await world.create("orders", 2)
    assert [(p.topic, p.index, p.is_leader) for p in led] == [("orders", 0, True), ("orders", 1, True)]
    assert world.partitions.topic_name(topic_id) == "orders"
    assert len(world.partitions) == 2


async def test_many_partitions_are_made_ahead_and_found_again(world: HandlerWorld, tmp_path: Path) -> None:
    topic_id = await world.create("wide", 40)
    assert len(world.partitions) == 40
    for index in range(40):
        assert world.partition("wide", index).log.topic_id == topic_id
        assert (tmp_path / f"wide-{index}" / "00000000000000000000.log").exists()
    await world.controller.create_partitions([MorePartitions(name="wide", count=80)])
    assert len(world.partitions) == 80
    world.append("wide", NOW_MS)
    assert world.partition("wide").high_watermark == 1


async def test_a_deleted_topic_is_gone_at_once_with_its_counters(world: HandlerWorld) -> None:
    gone: list[str] = []
    world.partitions.on_topics_removed.append(gone.extend)
    topic_id = await world.create("orders")
    partition = world.partition("orders")
    await world.controller.delete_topics([topic_id])
    with pytest.raises(BrokerError) as unknown:
        world.partitions.get("orders", 0)
    assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert gone == ["orders"]
    assert not partition.is_leader
    assert "orders" not in world.services.metrics.topics


async def test_a_topic_made_again_starts_empty(world: HandlerWorld) -> None:
    first = await world.create("orders")
    world.append("orders", NOW_MS)
    await world.controller.delete_topics([first])
    second = await world.create("orders")
    assert second != first
    assert world.partition("orders").log.end_offset == 0


async def test_a_partition_whose_disk_refuses_is_offline_and_the_others_work(
    world: HandlerWorld, tmp_path: Path
) -> None:
    (tmp_path / "orders-1").write_text("not a folder")
    await world.create("orders", 3)
    world.append("orders", NOW_MS)
    with pytest.raises(BrokerError) as offline:
        world.partitions.get("orders", 1)
    assert offline.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partitions.get("orders", 2).is_leader


# --- several brokers --------------------------------------------------------------------------------------------------


async def test_gained_and_lost_leadership_is_announced(tmp_path: Path) -> None:
    cluster = ReplicaCluster(tmp_path)
    events: list[tuple[str, int]] = []
    partitions = cluster[1].partitions
    partitions.on_leadership.append(lambda p: events.append(("leads", p.leader_epoch)))
    partitions.on_leadership_lost.append(lambda p: events.append(("lost", p.leader_epoch)))
    partitions.on_following.append(lambda p: events.append(("follows", p.leader_id)))
    partitions.on_removed.append(lambda _: events.append(("removed", 0)))
    cluster.create_topic()
    cluster.change(isr=(1, 2))
    cluster.change(leader=1)
    cluster.change(leader=2)
    cluster.change(leader=-1)
    cluster.change(leader=1)
    cluster.change(leader=2, replicas=(2, 3), isr=(2,))
    assert events == [
        ("leads", 0),
        ("leads", 1),
        ("lost", 2),
        ("follows", 2),
        ("follows", -1),
        ("leads", 4),
        ("removed", 0),
    ]
    assert partitions.applied_offset == cluster.image.offset
    with pytest.raises(BrokerError) as elsewhere:
        partitions.get(TOPIC, 0)
    assert elsewhere.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await cluster.close()


async def test_a_partition_reassigned_while_the_broker_was_down_is_deleted(tmp_path: Path) -> None:
    cluster = ReplicaCluster(tmp_path)
    cluster.create_topic()
    cluster.is_manual = True
    cluster.change(leader=2, replicas=(2, 3), isr=(2, 3))
    await cluster.crash(1)
    assert cluster[1].partitions.find(TOPIC, 0) is None
    assert cluster[1].logs.get(TOPIC, 0) is None
    await cluster.close()


async def test_kafka_851_the_checkpointed_high_watermark_survives_a_restart(tmp_path: Path) -> None:
    cluster = ReplicaCluster(tmp_path)
    cluster.create_topic()
    for value in (b"a", b"b"):
        append(cluster[1], value)
        for follower in (2, 3):
            cluster[1].partition.follower_fetched(follower, 1, log_start=0, broker_epoch=-1)
    cluster[1].logs.checkpoint()
    await cluster.crash(1)
    assert (cluster[1].partition.high_watermark, cluster[1].partition.log.end_offset) == (1, 2)
    await cluster.close()


async def test_a_fenced_follower_no_longer_holds_up_the_deletion_of_records(tmp_path: Path) -> None:
    cluster = ReplicaCluster(tmp_path)
    cluster.create_topic()
    append(cluster[1], b"a")
    for follower in (2, 3):
        cluster[1].partition.follower_fetched(follower, 1, log_start=0, broker_epoch=-1)
    partition = cluster[1].partition
    partition.delete_records_before(1)
    waiting = asyncio.create_task(partition.wait_deleted(1, timeout_ms=60_000))
    partition.follower_fetched(2, 1, log_start=1, broker_epoch=-1)
    await asyncio.sleep(0)
    assert (waiting.done(), partition.low_watermark) == (False, 0)
    cluster.fence(3)
    assert await asyncio.wait_for(waiting, 10) == 1
    await cluster.close()
