import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld


async def delete(world: HandlerWorld, *topics: DeleteTopicState, version: int = 6) -> list[DeletableTopicResult]:
    names = [topic.name or "" for topic in topics]
    return (await world.call(DeleteTopicsRequest(list(topics), names), DeleteTopicsResponse, version)).responses


@pytest.mark.parametrize("version", range(1, 7))
async def test_every_version_deletes_by_name(world: HandlerWorld, version: int) -> None:
    await world.create("t")
    (result,) = await delete(world, DeleteTopicState("t"), version=version)
    assert (result.name, result.error_code) == ("t", 0)
    assert world.quorum.image.topics == {}
    assert world.partitions.find("t", 0) is None


async def test_a_topic_is_deleted_by_id(world: HandlerWorld) -> None:
    topic_id = await world.create("t")
    (result,) = await delete(world, DeleteTopicState(None, topic_id))
    assert (result.name, result.topic_id, result.error_code) == ("t", topic_id, 0)


@pytest.mark.parametrize(
    "wanted,code",
    [
        (DeleteTopicState("no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(None, b"x" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopicState(None), ErrorCode.INVALID_REQUEST),
        (DeleteTopicState("t", b"x" * 16), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_not_one_topic_is_refused(world: HandlerWorld, wanted: DeleteTopicState, code: ErrorCode) -> None:
    await world.create("t")
    (result,) = await delete(world, wanted)
    assert result.error_code == code
    assert "t" in world.quorum.image.topics


async def test_a_topic_that_is_named_twice_is_kept(world: HandlerWorld) -> None:
    topic_id = await world.create("t")
    results = await delete(world, DeleteTopicState("t"), DeleteTopicState(None, topic_id))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert "t" in world.quorum.image.topics


class TestDisabled:
    @pytest.fixture
    def settings(self) -> BrokerSettings:
        return BrokerSettings(delete_topic_enable=False)

    @pytest.mark.parametrize("version,code", [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
    async def test_deletion_can_be_forbidden(self, world: HandlerWorld, version: int, code: ErrorCode) -> None:
        await world.create("t")
        (result,) = await delete(world, DeleteTopicState("t"), version=version)
        assert result.error_code == code
