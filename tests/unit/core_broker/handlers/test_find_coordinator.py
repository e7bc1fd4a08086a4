import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from core_broker.protocol.stored import metadata as stored
from tests.support.handler_world import HandlerWorld

GROUP_TYPE, TRANSACTION_TYPE, SHARE_TYPE = 0, 1, 2


@pytest.mark.parametrize("version", range(4))
async def test_coordinator_of_one_key_is_told_at_the_top(world: HandlerWorld, version: int) -> None:
    answer = await world.call(FindCoordinatorRequest(key="readers"), FindCoordinatorResponse, version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (
        0,
        world.settings.node_id,
        "192.0.2.1",
        9092,
    )


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_coordinators_of_many_keys_are_told_one_by_one(world: HandlerWorld, version: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"])
    answer = await world.call(request, FindCoordinatorResponse, version)
    assert [(found.key, found.error_code, found.port) for found in answer.coordinators] == [
        ("a", 0, 9092),
        ("b", 0, 9092),
    ]


async def test_coordinator_is_told_under_the_listener_that_was_asked(world: HandlerWorld) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["a"])
    answer = await world.call(request, FindCoordinatorResponse, 4, listener="INTERNAL")
    assert (answer.coordinators[0].host, answer.coordinators[0].port) == ("10.0.0.7", 9095)


@pytest.mark.parametrize("key_type,topic", [(GROUP_TYPE, OFFSETS_TOPIC), (TRANSACTION_TYPE, TRANSACTIONS_TOPIC)])
async def test_internal_topic_is_created_on_the_first_question(world: HandlerWorld, key_type: int, topic: str) -> None:
    assert topic not in world.quorum.image.topics
    await world.call(FindCoordinatorRequest(key="k", key_type=key_type), FindCoordinatorResponse, 2)
    assert len(world.quorum.image.topics[topic].partitions) == 50


@pytest.mark.parametrize("key,key_type", [("g", SHARE_TYPE), ("g", 99), ("", TRANSACTION_TYPE)])
async def test_what_nobody_coordinates_is_refused(world: HandlerWorld, key: str, key_type: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    answer = await world.call(request, FindCoordinatorResponse, 6)
    assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
    assert answer.coordinators[0].node_id == -1


async def test_coordinator_without_an_address_on_this_listener_is_not_available(world: HandlerWorld) -> None:
    answer = await world.call(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 1, listener="OTHER")
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def register_other(world: HandlerWorld, *, is_fenced: bool) -> None:
    """Another broker, with a listener of the same name, leads the partition of every group."""
    endpoint = stored.BrokerEndpoint(name="PLAINTEXT", host="other.example", port=9192)
    await world.call(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 1)
    topic = world.quorum.image.topics[OFFSETS_TOPIC]
    await world.quorum.append(
        [
            stored.RegisterBrokerRecord(broker_id=7, end_points=[endpoint], fenced=is_fenced),
            *(
                stored.PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=7)
                for index in topic.partitions
            ),
        ]
    )


async def test_coordinator_on_another_broker_is_named_with_its_own_address(world: HandlerWorld) -> None:
    await register_other(world, is_fenced=False)
    answer = await world.call(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 1)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 7, "other.example", 9192)


async def test_fenced_coordinator_is_not_available(world: HandlerWorld) -> None:
    await register_other(world, is_fenced=True)
    answer = await world.call(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 1)
    assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
