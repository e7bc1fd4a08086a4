"""The partitions of a broker follow the metadata log."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.partition import Partition
from core_broker.cluster.topic_changes import MorePartitions
from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld

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
