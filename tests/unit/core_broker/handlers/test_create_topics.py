import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.support.handler_world import HandlerWorld


async def create(
    world: HandlerWorld, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(list(topics), validate_only=validate_only)
    response = await world.call(request, CreateTopicsResponse, version)
    return {topic.name: topic for topic in response.topics}


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_creates_a_topic(world: HandlerWorld, version: int) -> None:
    result = (await create(world, CreatableTopic("t", 2, 1), version=version))["t"]
    assert (result.error_code, result.error_message) == (0, None)
    assert world.partition("t", 1).is_leader
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
    if version >= 7:
        assert result.topic_id == world.quorum.image.topics["t"].topic_id


async def test_the_answer_tells_every_config_and_where_it_comes_from(world: HandlerWorld) -> None:
    topic = CreatableTopic("t", -1, -1, configs=[CreatableTopicConfig("retention.ms", "5")])
    result = (await create(world, topic))["t"]
    assert result.configs is not None
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("5", 1)
    assert configs["max.message.bytes"] == ("1048588", 5)
    assert result.num_partitions == 3


async def test_a_topic_that_is_asked_for_twice_is_not_created(world: HandlerWorld) -> None:
    results = await create(world, CreatableTopic("a", 1, 1), CreatableTopic("a", 2, 1), CreatableTopic("b", 1, 1))
    assert (results["a"].error_code, results["b"].error_code) == (ErrorCode.INVALID_REQUEST, 0)
    assert list(world.quorum.image.topics) == ["b"]


async def test_a_partition_that_is_assigned_twice_is_refused(world: HandlerWorld) -> None:
    twice = [CreatableReplicaAssignment(0, [1]), CreatableReplicaAssignment(0, [1])]
    result = (await create(world, CreatableTopic("t", -1, -1, twice)))["t"]
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_a_manual_assignment_creates_the_partitions_it_names(world: HandlerWorld) -> None:
    chosen = [CreatableReplicaAssignment(1, [1]), CreatableReplicaAssignment(0, [1])]
    assert (await create(world, CreatableTopic("t", -1, -1, chosen)))["t"].num_partitions == 2


async def test_a_bad_config_is_named(world: HandlerWorld) -> None:
    topic = CreatableTopic("t", 1, 1, configs=[CreatableTopicConfig("cleanup.policy", "shred")])
    result = (await create(world, topic))["t"]
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert "cleanup.policy=shred" in (result.error_message or "")
    assert result.configs is None


async def test_validation_only_tells_what_would_be_created(world: HandlerWorld) -> None:
    result = (await create(world, CreatableTopic("t", 4, 1), validate_only=True))["t"]
    assert (result.error_code, result.num_partitions) == (0, 4)
    assert world.quorum.image.topics == {}


async def test_too_many_replicas_are_refused_as_kafka_does(world: HandlerWorld) -> None:
    result = (await create(world, CreatableTopic("t", 1, 3)))["t"]
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
