import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from core_broker.cluster.controller_channel import Requester
from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.topic_creation import TopicCreation
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import create_topics as wire
from core_broker.protocol.principals import Principal
from core_broker.protocol.stored import metadata as stored
from core_broker.settings import BrokerSettings

R = TypeVar("R", bound=Message)


class Cluster:
    """A controller that creates topics, and the metadata that this broker has."""

    def __init__(self, brokers: int = 3) -> None:
        self.image = MetadataImage(cluster_id="c")
        self.requests: list[wire.CreateTopicsRequest] = []
        self.clients: list[Requester] = []
        """In whose names they were."""
        self.errors: dict[str, ErrorCode] = {}
        self.failure: BrokerError | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_far_ahead = False
        self._listeners: list[Callable[[MetadataImage, Sequence[Message]], None]] = []
        self.learn(
            *(stored.RegisterBrokerRecord(broker_id=number, fenced=number >= brokers) for number in range(brokers + 1))
        )

    def subscribe(self, listener: Callable[[MetadataImage, Sequence[Message]], None]) -> None:
        self._listeners.append(listener)

    def learn(self, *records: Message) -> None:
        draft = MetadataDraft(self.image)
        draft.replay(records)
        self.image = draft.finish(offset=self.image.offset + 1, epoch=1)
        for listener in self._listeners:
            listener(self.image, records)

    def learn_topic(self, name: str) -> None:
        self.learn(stored.TopicRecord(name=name, topic_id=name.encode().ljust(16)[:16]))

    async def call(self, request: Message, *, timeout_seconds: float = 30.0) -> Message:
        assert isinstance(request, wire.CreateTopicsRequest)
        assert timeout_seconds < 30
        self.requests.append(request)
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        if not self.is_far_ahead:
            for topic in request.topics:
                if not self.errors.get(topic.name):
                    asyncio.get_running_loop().call_soon(self.learn_topic, topic.name)
        return wire.CreateTopicsResponse(
            topics=[
                wire.CreatableTopicResult(topic.name, error_code=self.errors.get(topic.name, ErrorCode.NONE))
                for topic in request.topics
            ]
        )

    async def call_for(
        self, client: Requester, request: Message, response: type[R], *, timeout_seconds: float = 30.0
    ) -> R:
        self.clients.append(client)
        answer = await self.call(request, timeout_seconds=timeout_seconds)
        assert isinstance(answer, response)
        return answer

    def creation(self, *, image_wait_seconds: float = 60.0) -> TopicCreation:
        settings = BrokerSettings(num_partitions=4, default_replication_factor=2)
        return TopicCreation(self, self, settings=lambda: settings, image_wait_seconds=image_wait_seconds)


@pytest.mark.parametrize("brokers,factor", [(1, 1), (3, 3), (5, 3)])
@pytest.mark.parametrize("name", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
async def test_internal_topic_has_as_many_replicas_as_configured_or_as_there_are_live_brokers(
    name: str, brokers: int, factor: int
) -> None:
    cluster = Cluster(brokers)
    await cluster.creation().ensure_internal_topic(name)
    assert name in cluster.image.topics
    (topic,) = cluster.requests[0].topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (name, 50, factor)
    assert ("cleanup.policy", "compact") in [(config.name, config.value) for config in topic.configs]


async def test_topic_of_a_client_has_the_defaults_of_this_broker() -> None:
    cluster = Cluster()
    assert await cluster.creation().auto_create(["orders"]) == {}
    (topic,) = cluster.requests[0].topics
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (4, 2, [])


async def test_topic_that_exists_needs_no_request() -> None:
    cluster = Cluster()
    cluster.learn_topic("orders")
    assert await cluster.creation().auto_create(["orders"]) == {}
    assert cluster.requests == []


async def test_concurrent_requests_for_a_topic_share_one_request() -> None:
    cluster = Cluster()
    cluster.may_answer.clear()
    creation = cluster.creation()
    waiting = [asyncio.ensure_future(creation.auto_create(["orders", str(number)])) for number in range(3)]
    await asyncio.sleep(0)
    cluster.may_answer.set()
    assert await asyncio.gather(*waiting) == [{}, {}, {}]
    assert [[topic.name for topic in request.topics] for request in cluster.requests] == [["orders", "0"], ["1"], ["2"]]


async def test_topic_that_another_broker_created_meanwhile_is_awaited() -> None:
    cluster = Cluster()
    cluster.errors["orders"] = ErrorCode.TOPIC_ALREADY_EXISTS
    waiting = asyncio.ensure_future(cluster.creation().auto_create(["orders"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    cluster.learn_topic("orders")
    assert await waiting == {}


async def test_error_of_one_topic_leaves_the_others_alone() -> None:
    cluster = Cluster()
    cluster.errors["bad"] = ErrorCode.INVALID_REPLICATION_FACTOR
    errors = await cluster.creation().auto_create(["good", "bad"])
    assert {name: error.code for name, error in errors.items()} == {"bad": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert "good" in cluster.image.topics


async def test_controller_that_cannot_be_reached_is_an_error_of_every_topic() -> None:
    cluster = Cluster()
    cluster.failure = BrokerError(ErrorCode.REQUEST_TIMED_OUT)
    creation = cluster.creation()
    assert set(await creation.auto_create(["a", "b"])) == {"a", "b"}
    with pytest.raises(BrokerError, match="REQUEST_TIMED_OUT"):
        await creation.ensure_internal_topic(OFFSETS_TOPIC)


async def test_request_that_is_cancelled_does_not_leave_others_waiting() -> None:
    cluster = Cluster()
    cluster.may_answer.clear()
    creation = cluster.creation()
    first = asyncio.ensure_future(creation.auto_create(["orders"]))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(creation.auto_create(["orders"]))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second)["orders"].code is ErrorCode.REQUEST_TIMED_OUT
    cluster.may_answer.set()
    assert await creation.auto_create(["orders"]) == {}


async def test_internal_topic_that_this_broker_does_not_learn_of_in_time_is_not_available() -> None:
    cluster = Cluster()
    cluster.is_far_ahead = True
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        await cluster.creation(image_wait_seconds=0.01).ensure_internal_topic(OFFSETS_TOPIC)


async def test_a_topic_is_requested_in_the_name_of_the_client_that_needs_it() -> None:
    cluster = Cluster()
    alice = Requester(Principal("User", "alice"), "192.0.2.9", "app")
    assert await cluster.creation().auto_create(["orders"], alice) == {}
    assert cluster.clients == [alice]


async def test_clients_do_not_share_a_request_for_the_same_topic() -> None:
    """What the first may not create, the second may."""
    cluster = Cluster()
    creation = cluster.creation()
    alice, bob = (Requester(Principal("User", name), "192.0.2.9") for name in ("alice", "bob"))
    cluster.may_answer.clear()
    waiting = [asyncio.ensure_future(creation.auto_create(["orders"], client)) for client in (alice, bob, bob)]
    await asyncio.sleep(0)
    cluster.may_answer.set()
    assert await asyncio.gather(*waiting) == [{}, {}, {}]
    assert cluster.clients == [alice, bob]
