import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tests.support.handler_world import HandlerWorld


async def grow(
    world: HandlerWorld, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> dict[str, int]:
    request = CreatePartitionsRequest(list(topics), validate_only=validate_only)
    response = await world.call(request, CreatePartitionsResponse, version)
    return {result.name: result.error_code for result in response.results}


@pytest.mark.parametrize("version", range(4))
async def test_every_version_adds_partitions(world: HandlerWorld, version: int) -> None:
    await world.create("t", 1)
    assert await grow(world, CreatePartitionsTopic("t", 3, None), version=version) == {"t": 0}
    assert world.partition("t", 2).is_leader


async def test_assignments_of_the_new_partitions_are_checked(world: HandlerWorld) -> None:
    await world.create("t", 1)
    chosen = [CreatePartitionsAssignment([9])]
    assert await grow(world, CreatePartitionsTopic("t", 2, chosen)) == {"t": ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert await grow(world, CreatePartitionsTopic("t", 2, [CreatePartitionsAssignment([1])])) == {"t": 0}


async def test_each_topic_has_its_own_result(world: HandlerWorld) -> None:
    await world.create("t", 1)
    await world.create("u", 1)
    results = await grow(
        world,
        CreatePartitionsTopic("t", 2, None),
        CreatePartitionsTopic("no", 2, None),
        CreatePartitionsTopic("u", 2, None),
        CreatePartitionsTopic("u", 3, None),
    )
    assert results == {"t": 0, "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "u": ErrorCode.INVALID_REQUEST}


async def test_validation_only_adds_nothing(world: HandlerWorld) -> None:
    await world.create("t", 1)
    assert await grow(world, CreatePartitionsTopic("t", 2, None), validate_only=True) == {"t": 0}
    assert len(world.quorum.image.topics["t"].partitions) == 1
