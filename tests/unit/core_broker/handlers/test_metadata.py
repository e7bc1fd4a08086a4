import pytest

from core_broker.cluster.controller.topics import NewTopic
from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from core_broker.protocol.stored.metadata import FenceBrokerRecord
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld

EVERY_VERSION = range(14)


async def ask(
    world: HandlerWorld,
    *names: str,
    version: int = 12,
    create: bool = False,
    listener: str = "PLAINTEXT",
    local_host: str = "192.0.2.1",
) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics, allow_auto_topic_creation=create)
    return await world.call(request, MetadataResponse, version, listener=listener, local_host=local_host)


def names(response: MetadataResponse) -> list[str | None]:
    return sorted((topic.name for topic in response.topics), key=str)


@pytest.mark.parametrize("version", EVERY_VERSION)
async def test_every_version_tells_broker_and_leader(world: HandlerWorld, version: int) -> None:
    topic_id = await world.create("t", 2)
    response = await ask(world, "t", version=version)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "192.0.2.1", 9092)
    assert broker.rack == ("rack-a" if version >= 1 else None)
    assert response.cluster_id == (world.quorum.cluster_id if version >= 2 else None)
    assert response.controller_id == (1 if version >= 1 else -1)
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, "t")
    assert topic.topic_id == (topic_id if version >= 10 else bytes(16))
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert {p.leader_epoch for p in topic.partitions} == ({0} if version >= 7 else {-1})


@pytest.mark.parametrize("version", EVERY_VERSION)
async def test_all_topics_are_listed_for_null_and_in_version_0_for_none(world: HandlerWorld, version: int) -> None:
    await world.create("a")
    await world.create("b", 3)
    request = MetadataRequest(None if version else [])
    assert names(await world.call(request, MetadataResponse, version)) == ["a", "b"]


@pytest.mark.parametrize("version", [1, 8, 9, 13])
async def test_an_empty_list_asks_for_no_topic(world: HandlerWorld, version: int) -> None:
    await world.create("a")
    response = await ask(world, version=version)
    assert response.topics == []
    assert len(response.brokers) == 1


@pytest.mark.parametrize("version", [3, 4, 12])
async def test_many_topics_are_told_in_full(world: HandlerWorld, version: int) -> None:
    wanted = [f"topic-{number}" for number in range(150)]
    await world.controller.create_topics([NewTopic(name=name, partition_count=1) for name in wanted])
    response = await ask(world, *wanted, version=version)
    assert [topic.name for topic in response.topics] == wanted
    assert all(len(topic.partitions) == 1 for topic in response.topics)


async def test_an_impossible_name_is_told_so(world: HandlerWorld) -> None:
    (topic,) = (await ask(world, "a/b", create=True)).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", [0, 3, 4, 12])
async def test_a_missing_topic_is_created_and_can_be_used_at_once(world: HandlerWorld, version: int) -> None:
    (topic,) = (await ask(world, "new", version=version, create=True)).topics
    assert topic.error_code == 0
    assert len(topic.partitions) == 3
    assert world.partition("new", 2).is_leader


async def test_a_client_that_forbids_creation_creates_nothing(world: HandlerWorld) -> None:
    assert (await ask(world, "new")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.quorum.image.topics == {}


class TestWithoutAutoCreation:
    @pytest.fixture
    def settings(self) -> BrokerSettings:
        return BrokerSettings(auto_create_topics_enable=False)

    @pytest.mark.parametrize("version", [0, 4, 8, 12])
    async def test_a_broker_that_forbids_creation_creates_nothing(self, world: HandlerWorld, version: int) -> None:
        (topic,) = (await ask(world, "new", version=version, create=True)).topics
        assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new")
        assert world.quorum.image.topics == {}


async def test_why_a_topic_cannot_be_created_is_told(world: HandlerWorld) -> None:
    await world.create("a.b")
    (topic,) = (await ask(world, "a_b", create=True)).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "a_b")


async def test_an_internal_topic_is_created_with_its_own_partitions_and_marked(world: HandlerWorld) -> None:
    (topic,) = (await ask(world, OFFSETS_TOPIC, create=True)).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)


@pytest.mark.parametrize("version", [12, 13])
async def test_a_topic_is_found_by_its_id(world: HandlerWorld, version: int) -> None:
    topic_id = await world.create("t")
    wanted = [MetadataRequestTopic(topic_id, None), MetadataRequestTopic(b"x" * 16, None)]
    found, unknown = (await world.call(MetadataRequest(wanted), MetadataResponse, version)).topics
    assert (found.name, found.topic_id) == ("t", topic_id)
    assert unknown == MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, b"x" * 16)


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_are_refused_before_version_12(world: HandlerWorld, version: int) -> None:
    topic_id = await world.create("t")
    wanted = [MetadataRequestTopic(topic_id, None)]
    (topic,) = (await world.call(MetadataRequest(wanted), MetadataResponse, version)).topics
    assert topic.error_code == ErrorCode.INVALID_REQUEST


async def test_the_address_is_that_of_the_listener_that_was_asked(world: HandlerWorld) -> None:
    (broker,) = (await ask(world, listener="INTERNAL")).brokers
    assert (broker.host, broker.port) == ("10.0.0.7", 9095)
    (broker,) = (await ask(world, local_host="::1")).brokers
    assert (broker.host, broker.port) == ("::1", 9092)


async def test_answers_follow_the_metadata(world: HandlerWorld) -> None:
    topic_id = await world.create("t")
    assert len((await ask(world, "t")).topics[0].partitions) == 1
    await world.create("other")
    assert len((await ask(world, "t")).topics[0].partitions) == 1
    await world.controller.delete_topics([topic_id])
    await world.create("t", 4)
    (topic,) = (await ask(world, "t")).topics
    assert len(topic.partitions) == 4
    assert topic.topic_id != topic_id


async def test_a_fenced_broker_is_neither_listed_nor_leading(world: HandlerWorld) -> None:
    await world.create("t")
    await ask(world, "t")
    await world.quorum.append([FenceBrokerRecord(id=1, epoch=world.quorum.image.brokers[1].epoch)])
    response = await ask(world, "t")
    (partition,) = response.topics[0].partitions
    assert response.brokers == []
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [1]


@pytest.mark.parametrize("version", [8, 10, 11])
async def test_allowed_operations_are_told_to_who_asks(world: HandlerWorld, version: int) -> None:
    await world.create("t")
    request = MetadataRequest(
        [MetadataRequestTopic(name="t")],
        include_cluster_authorized_operations=version <= 10,
        include_topic_authorized_operations=True,
    )
    response = await world.call(request, MetadataResponse, version)
    assert response.topics[0].topic_authorized_operations == 3576
    assert response.cluster_authorized_operations == (8096 if version <= 10 else -(2**31))
    silent = await ask(world, "t", version=version)
    assert silent.topics[0].topic_authorized_operations == -(2**31)
