import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.support.handler_world import HandlerWorld


async def delete(
    world: HandlerWorld, offset: int, *, topic: str = "t", index: int = 0, version: int = 2
) -> tuple[int, int]:
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])])
    result = (await world.call(request, DeleteRecordsResponse, version)).topics[0].partitions[0]
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(3))
async def test_records_before_the_offset_are_gone(world: HandlerWorld, version: int) -> None:
    await world.create("t")
    world.append("t", 1, 2, 3)
    assert await delete(world, 2, version=version) == (0, 2)
    assert world.partition("t").log.start_offset == 2


async def test_minus_one_deletes_up_to_the_high_watermark(world: HandlerWorld) -> None:
    await world.create("t")
    world.append("t", 1, 2, 3)
    assert await delete(world, -1) == (0, 3)


@pytest.mark.parametrize("offset", [4, -2])
async def test_an_offset_beyond_the_log_is_out_of_range(world: HandlerWorld, offset: int) -> None:
    await world.create("t")
    world.append("t", 1, 2, 3)
    assert await delete(world, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_the_start_never_goes_back(world: HandlerWorld) -> None:
    await world.create("t")
    world.append("t", 1, 2, 3)
    await delete(world, 2)
    assert await delete(world, 1) == (0, 2)


async def test_a_topic_that_is_only_compacted_keeps_its_records(world: HandlerWorld) -> None:
    await world.create("t", cleanup_policy="compact")
    assert await delete(world, 0) == (ErrorCode.POLICY_VIOLATION, -1)


async def test_internal_topics_and_unknown_partitions_are_refused(world: HandlerWorld) -> None:
    await world.create("t")
    assert (await delete(world, 0, topic=OFFSETS_TOPIC))[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (await delete(world, 0, index=3))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
