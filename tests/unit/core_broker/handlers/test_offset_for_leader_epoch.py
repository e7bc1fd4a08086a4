import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from core_broker.protocol.stored.metadata import PartitionChangeRecord
from tests.support.handler_world import HandlerWorld


async def ask(
    world: HandlerWorld, epoch: int, *, current: int = -1, partition: int = 0, version: int = 4
) -> EpochEndOffset:
    topic = OffsetForLeaderTopic("t", [OffsetForLeaderPartition(partition, current, epoch)])
    request = OffsetForLeaderEpochRequest(topics=[topic])
    return (await world.call(request, OffsetForLeaderEpochResponse, version)).topics[0].partitions[0]


@pytest.fixture
async def led_twice(world: HandlerWorld) -> HandlerWorld:
    """Offsets 0 and 1 of epoch 0, then 2 of epoch 1."""
    topic_id = await world.create("t")
    world.append("t", 1, 2)
    await world.quorum.append([PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1)])
    world.append("t", 3)
    return world


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_end_of_an_older_epoch_is_the_start_of_the_next(led_twice: HandlerWorld, version: int) -> None:
    assert await ask(led_twice, 0, version=version) == EpochEndOffset(0, 0, 0, 2)


async def test_the_end_of_the_current_epoch_is_the_end_of_the_log(led_twice: HandlerWorld) -> None:
    assert await ask(led_twice, 1, current=1) == EpochEndOffset(0, 0, 1, 3)


async def test_nothing_is_known_of_a_future_epoch(led_twice: HandlerWorld) -> None:
    assert await ask(led_twice, 2) == EpochEndOffset(0, 0, -1, -1)


@pytest.mark.parametrize("current,code", [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)])
async def test_the_epoch_the_asker_believes_in_is_checked(
    led_twice: HandlerWorld, current: int, code: ErrorCode
) -> None:
    assert (await ask(led_twice, 0, current=current)).error_code == code


async def test_an_unknown_partition_is_told_so(led_twice: HandlerWorld) -> None:
    assert (await ask(led_twice, 0, partition=9)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
