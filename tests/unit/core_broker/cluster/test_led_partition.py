"""What a coordinator reads and writes is fenced by the leader epoch in which it loaded the partition."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from core_broker.cluster.led_partition import LedPartition, NotCommittedError
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    world = HandlerWorld(tmp_path, BrokerSettings(), ManualClock(1_700_000_000_000))
    await world.register()
    await world.create("t")
    yield world
    await world.close()


@pytest.fixture
def partition(world: HandlerWorld) -> Partition:
    return world.partition("t")


def change(world: HandlerWorld, **changes: int) -> None:
    """Apply what the metadata log says about the partition."""
    described = world.quorum.image.topics["t"].partitions[0]
    world.partition("t").update(msgspec.structs.replace(described, **changes))


def batch() -> bytearray:
    return build_batch([Record(timestamp=1, value=b"v")])


async def read(led: LedPartition) -> list[int]:
    return [header.base_offset async for header, _ in led.committed_batches()]


@pytest.mark.parametrize("changes", [{"leader_epoch": 1}, {"leader_id": 7, "leader_epoch": 1}])
async def test_nothing_is_appended_in_another_epoch(
    world: HandlerWorld, partition: Partition, changes: dict[str, int]
) -> None:
    led = LedPartition(partition, 0)
    change(world, **changes)
    with pytest.raises(BrokerError) as caught:
        led.append(batch())
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.end_offset == 0


async def test_batch_that_a_later_leader_may_have_replaced_does_not_count_as_committed(
    world: HandlerWorld, partition: Partition
) -> None:
    led = LedPartition(partition, 0)
    appended = led.append(batch())
    change(world, leader_epoch=1)
    with pytest.raises(NotCommittedError) as caught:
        await led.wait_committed(appended, timeout_ms=1000)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_released_partition_is_neither_read_nor_written(partition: Partition) -> None:
    led = LedPartition(partition, 0)
    led.release()
    with pytest.raises(BrokerError):
        led.append(batch())
    with pytest.raises(BrokerError):
        await read(led)


async def test_reading_ends_only_when_what_earlier_leaders_wrote_is_committed(partition: Partition) -> None:
    for _ in range(3):
        partition.append(batch(), acks_all=True)
    partition.high_watermark = 1  # as a new leader knows it from its predecessor
    led = LedPartition(partition, 0)
    reading = asyncio.ensure_future(read(led))
    await asyncio.sleep(0)
    assert not reading.done()
    partition.configure(partition.log.settings)  # the replicas have caught up
    assert await reading == [0, 1, 2]


async def test_batches_written_while_reading_are_read_too(partition: Partition) -> None:
    partition.append(batch(), acks_all=True)
    found = []
    async for header, _ in LedPartition(partition, 0).committed_batches():
        found.append(header.base_offset)
        if header.base_offset == 0:
            partition.append(batch(), acks_all=True)
    assert found == [0, 1]


async def test_reading_stops_when_the_epoch_ends(world: HandlerWorld, partition: Partition) -> None:
    partition.append(batch(), acks_all=True)
    partition.high_watermark = 0
    reading = asyncio.ensure_future(read(LedPartition(partition, 0)))
    await asyncio.sleep(0)
    change(world, leader_epoch=1)
    with pytest.raises(BrokerError) as caught:
        await reading
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
