import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld


async def ask(
    world: HandlerWorld, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        [TopicRequest(name) for name in names], limit, None if cursor is None else Cursor(*cursor)
    )
    return await world.call(request, DescribeTopicPartitionsResponse, 0)


def pages(response: DescribeTopicPartitionsResponse) -> dict[str | None, list[int]]:
    return {topic.name: [partition.partition_index for partition in topic.partitions] for topic in response.topics}


def cursor(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    found = response.next_cursor
    return None if found is None else (found.topic_name, found.partition_index)


async def test_topics_come_in_the_order_of_their_names(world: HandlerWorld) -> None:
    await world.create("b", 2)
    await world.create("a", 1)
    response = await ask(world)
    assert pages(response) == {"a": [0], "b": [0, 1]}
    assert list(pages(response)) == ["a", "b"]
    assert cursor(response) is None
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
async def test_following_the_cursor_shows_every_partition_once(world: HandlerWorld, limit: int) -> None:
    for name, count in (("a", 3), ("b", 1), ("c", 4)):
        await world.create(name, count)
    seen: list[tuple[str | None, int]] = []
    place: tuple[str, int] | None = ("", 0)
    while place is not None:
        response = await ask(world, limit=limit, cursor=place)
        found = [(name, index) for name, indexes in pages(response).items() for index in indexes]
        assert len(found) <= limit
        seen += found
        place = cursor(response)
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]


async def test_a_cursor_whose_topic_was_deleted_goes_on_with_the_next(world: HandlerWorld) -> None:
    await world.create("a")
    await world.create("c", 2)
    assert pages(await ask(world, cursor=("b", 7))) == {"c": [0, 1]}


async def test_a_topic_that_does_not_exist_is_told_so_and_not_created(world: HandlerWorld) -> None:
    (topic,) = (await ask(world, "no")).topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no")
    assert world.quorum.image.topics == {}


async def test_a_cursor_that_points_nowhere_is_refused(world: HandlerWorld) -> None:
    await world.create("a")
    (topic,) = (await ask(world, "a", cursor=("a", -1))).topics
    assert topic.error_code == ErrorCode.INVALID_REQUEST


class TestLimit:
    @pytest.fixture
    def settings(self) -> BrokerSettings:
        return BrokerSettings(max_request_partition_size_limit=2)

    async def test_the_broker_limits_the_size_of_an_answer(self, world: HandlerWorld) -> None:
        await world.create("a", 3)
        response = await ask(world, limit=1000)
        assert pages(response) == {"a": [0, 1]}
        assert cursor(response) == ("a", 2)
