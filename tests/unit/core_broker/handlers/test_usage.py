"""Requests are charged to the quotas of their client, and responses say for how long it is throttled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from typing_extensions import override

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.handlers.produce import AcksNoneFailed
from core_broker.handlers.session import Session
from core_broker.handlers.table import BROKER_BY_KEY
from core_broker.handlers.usage import MeasuredCoroutine, RequestUsage, Stopwatch
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from core_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from core_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from core_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from core_broker.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.principals import Principal, encode_principal
from core_broker.protocol.records import Record, build_batch
from core_broker.server.dispatch import _ask_controller
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.controller_location import KnownController
from tests.support.handler_world import HandlerWorld, as_bytes
from tests.support.wire import request_body

ALICE = Principal("User", "alice")
KB = 1000


def session(principal: Principal = ALICE) -> Session:
    """A connection of a client that has logged in."""
    return Session(host="192.0.2.9", listener_name="PLAINTEXT", local_host="192.0.2.1", principal=principal)


def records(size_bytes: int) -> bytearray:
    return build_batch([Record(timestamp=1_700_000_000_000, value=bytes(size_bytes))])


def produce_request(size_bytes: int, *, acks: int = 1, topic: str = "orders") -> ProduceRequest:
    part = PartitionProduceData(0, bytes(records(size_bytes)))
    return ProduceRequest(None, acks, 1000, [TopicProduceData(topic, partition_data=[part])])


# --- producers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 13))
async def test_a_producer_over_its_quota_is_throttled_by_the_size_of_its_requests(
    world: HandlerWorld, version: int
) -> None:
    await world.create("orders")
    await world.set_quota("producer_byte_rate", KB, user="alice")
    sent = produce_request(20 * KB)
    size = len(request_body(sent, version))
    alice = session()
    response = await world.call(sent, ProduceResponse, version, session=alice)
    assert response.throttle_time_ms == round((size / 10 - KB) / KB * 10_000)
    assert alice.throttle_ms == response.throttle_time_ms
    assert response.responses[0].partition_responses[0].error_code == 0
    other = await world.call(sent, ProduceResponse, version, session=session(Principal("User", "bob")))
    assert other.throttle_time_ms == 0


async def test_a_producer_within_its_quota_is_not_throttled(world: HandlerWorld) -> None:
    await world.create("orders")
    await world.set_quota("producer_byte_rate", 10 * KB, user="alice")
    alice = session()
    for _ in range(9):
        response = await world.call(produce_request(10 * KB), ProduceResponse, 9, session=alice)
        assert response.throttle_time_ms == 0
    assert alice.throttle_ms == 0


async def test_a_producer_without_responses_is_throttled_too(world: HandlerWorld) -> None:
    await world.create("orders")
    await world.set_quota("producer_byte_rate", KB, client_id="wire")
    alice = session()
    assert await world.send(produce_request(20 * KB, acks=0), 9, session=alice) is None
    assert alice.throttle_ms > 10_000


async def test_a_failed_request_counts(world: HandlerWorld) -> None:
    await world.set_quota("producer_byte_rate", KB, client_id="wire")
    alice = session()
    with pytest.raises(AcksNoneFailed):
        await world.send(produce_request(20 * KB, acks=0, topic="missing"), 9, session=alice)
    assert alice.throttle_ms > 10_000


# --- consumers --------------------------------------------------------------------------------------------------------


def fetch_request(
    offset: int = 0, *, at: tuple[int, int] = (0, -1), min_bytes: int = 1, max_wait_ms: int = 0
) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 30,
        session_id=at[0],
        session_epoch=at[1],
        topics=[FetchTopic(topic="orders", partitions=[part])],
    )


async def filled(world: HandlerWorld, batches: int, size_bytes: int) -> None:
    await world.create("orders")
    for _ in range(batches):
        world.partition("orders").append(records(size_bytes), acks_all=False)


def received(response: FetchResponse) -> int:
    return sum(len(part.records or b"") for topic in response.responses for part in topic.partitions)


async def test_a_fetch_reads_what_its_quota_allows_in_a_window(world: HandlerWorld) -> None:
    await filled(world, 5, 4 * KB)
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    response = await world.call(fetch_request(), FetchResponse, 12, session=session())
    assert 8 * KB < received(response) <= 10 * KB
    assert response.throttle_time_ms == 0


@pytest.mark.parametrize("version", [4, 7, 12])
async def test_a_consumer_over_its_quota_gets_an_empty_response_that_does_not_count(
    world: HandlerWorld, version: int
) -> None:
    await filled(world, 2, 9 * KB)
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    alice = session()
    first = await world.call(fetch_request(), FetchResponse, version, session=alice)
    assert received(first) > 9 * KB
    for _ in range(2):
        second = await world.call(fetch_request(1), FetchResponse, version, session=alice)
        assert second.responses == []
        assert 8000 < second.throttle_time_ms < 10_000
        assert alice.throttle_ms == second.throttle_time_ms
    world.clock.advance(11_000)
    third = await world.call(fetch_request(1), FetchResponse, version, session=alice)
    assert received(third) > 9 * KB
    assert third.throttle_time_ms == 0


async def test_a_throttled_fetch_leaves_its_session_as_it_was(world: HandlerWorld) -> None:
    await filled(world, 2, 9 * KB)
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    first = await world.call(fetch_request(at=(0, 0)), FetchResponse, 12, session=session())
    session_id = first.session_id
    assert session_id
    throttled = await world.call(fetch_request(1, at=(session_id, 1)), FetchResponse, 12, session=session())
    assert (throttled.session_id, throttled.responses) == (session_id, [])
    world.clock.advance(11_000)
    nothing_new = FetchRequest(max_bytes=1 << 30, session_id=session_id, session_epoch=2)
    last = await world.call(nothing_new, FetchResponse, 12, session=session())
    assert received(last) > 9 * KB


async def test_a_throttled_fetch_begins_no_session(world: HandlerWorld) -> None:
    await filled(world, 2, 9 * KB)
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    await world.call(fetch_request(), FetchResponse, 12, session=session())
    throttled = await world.call(fetch_request(1, at=(0, 0)), FetchResponse, 12, session=session())
    assert throttled.session_id == 0
    assert len(world.services.fetch_sessions) == 0


async def test_a_batch_larger_than_a_window_allows_is_sent_and_throttles_afterwards(world: HandlerWorld) -> None:
    await filled(world, 1, 30 * KB)
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    alice = session()
    response = await world.call(fetch_request(), FetchResponse, 12, session=alice)
    assert received(response) > 30 * KB
    assert response.throttle_time_ms == alice.throttle_ms > 20_000


async def test_a_fetch_waits_for_no_more_than_its_quota_allows(world: HandlerWorld) -> None:
    await filled(world, 3, 4 * KB)
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    waiting = fetch_request(min_bytes=1 << 20, max_wait_ms=60_000)
    answer = await world.send(waiting, 12, session=session())
    assert received(decode(FetchResponse, 12, as_bytes(answer), 9)) > 8 * KB


async def test_a_fetch_that_waited_is_charged(world: HandlerWorld) -> None:
    await world.create("orders")
    await world.set_quota("consumer_byte_rate", KB, user="alice")
    alice = session()
    waiting = asyncio.ensure_future(world.call(fetch_request(max_wait_ms=60_000), FetchResponse, 12, session=alice))
    await asyncio.sleep(0)
    world.partition("orders").append(records(30 * KB), acks_all=False)
    assert (await waiting).throttle_time_ms > 0


async def test_followers_have_no_quota(world: HandlerWorld) -> None:
    await filled(world, 5, 9 * KB)
    await world.set_quota("consumer_byte_rate", KB, user=None)
    await world.set_quota("request_percentage", 0.001, user=None)
    follower = session()
    request = fetch_request()
    request.replica_state = ReplicaState(2, -1)
    request.topics[0].topic_id = world.quorum.image.topics["orders"].topic_id
    response = await world.call(request, FetchResponse, 17, session=follower)
    assert response.throttle_time_ms == follower.throttle_ms == 0


# --- time -------------------------------------------------------------------------------------------------------------


class SlowClock(ManualClock):
    """A clock on which every look takes a tenth of a second."""

    @override
    def monotonic(self) -> float:
        self.advance(100)
        return super().monotonic()


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[HandlerWorld]:
    """A broker that takes long for everything."""
    world = HandlerWorld(tmp_path, BrokerSettings(), SlowClock(1_700_000_000_000))
    await world.register()
    await world.create("orders")
    yield world
    await world.close()


@pytest.mark.parametrize(
    "asked,response,version",
    [
        (ApiVersionsRequest("test", "1"), ApiVersionsResponse, 3),
        (MetadataRequest(topics=[]), MetadataResponse, 9),
        (produce_request(1), ProduceResponse, 9),
        (fetch_request(), FetchResponse, 12),
        (CreateTopicsRequest([]), CreateTopicsResponse, 7),
    ],
)
async def test_the_time_of_every_request_counts(
    slow: HandlerWorld, asked: Message, response: type[Message], version: int
) -> None:
    await slow.set_quota("request_percentage", 0.1, user="alice")
    alice = session()
    answer: Any = await slow.call(asked, response, version, session=alice)
    assert answer.throttle_time_ms == alice.throttle_ms == 1000
    bob = session(Principal("User", "bob"))
    await slow.call(asked, response, version, session=bob)
    assert bob.throttle_ms == 0


async def test_a_response_without_the_field_throttles_all_the_same(slow: HandlerWorld) -> None:
    await slow.set_quota("request_percentage", 0.1, user="alice")
    alice = session()
    await slow.call(DescribeQuorumRequest([]), DescribeQuorumResponse, 1, session=alice)
    assert alice.throttle_ms == 1000


async def test_a_producer_without_responses_pays_for_no_time(slow: HandlerWorld) -> None:
    await slow.set_quota("request_percentage", 0.1, user="alice")
    alice = session()
    await slow.send(produce_request(1, acks=0), 9, session=alice)
    assert alice.throttle_ms == 0


async def test_requests_of_other_nodes_are_exempt(slow: HandlerWorld) -> None:
    await slow.set_quota("request_percentage", 0.1, user=None)
    node = Session(host="192.0.2.9", listener_name="CONTROLLER", local_host="192.0.2.1", is_controller_listener=True)
    await slow.send(BrokerHeartbeatRequest(broker_id=1), 1, session=node)
    assert node.throttle_ms == 0
    assert slow.quotas.exempt.rate(slow.clock.monotonic()) > 0


async def test_the_time_that_a_request_waits_does_not_count() -> None:
    clock = ManualClock()
    stopwatch = Stopwatch(clock)
    clock.advance(5)
    stopwatch.pause()
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> float:
        clock.advance(10)
        await gate
        clock.advance(20)
        return stopwatch.seconds

    clock.advance(1000)
    task = asyncio.get_running_loop().create_task(MeasuredCoroutine(work(), stopwatch))
    await asyncio.sleep(0)
    clock.advance(1000)
    gate.set_result(None)
    assert await task == pytest.approx(0.035)
    assert stopwatch.seconds == pytest.approx(0.035)


async def test_a_measured_coroutine_can_be_cancelled_wherever_it_is() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("cleaned up")

    for rounds in (0, 1):
        task = asyncio.get_running_loop().create_task(MeasuredCoroutine(work(), Stopwatch(ManualClock())))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == ["cleaned up"]


async def test_a_measured_coroutine_can_be_awaited() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await MeasuredCoroutine(work(), Stopwatch(ManualClock())) == 7


# --- changes of topics ------------------------------------------------------------------------------------------------


def create_request(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, count, 1) for name, count in topics], validate_only=validate_only)


async def create(
    world: HandlerWorld, version: int, *topics: tuple[str, int], validate_only: bool = False
) -> tuple[int, list[int]]:
    """The throttle time, and the error code of each topic."""
    request = create_request(*topics, validate_only=validate_only)
    response = await world.call(request, CreateTopicsResponse, version, session=session())
    return response.throttle_time_ms, [topic.error_code for topic in response.topics]


async def test_topics_are_created_one_by_one_until_the_quota_is_used_up(world: HandlerWorld) -> None:
    await world.set_quota("controller_mutation_rate", 1, user="alice")
    throttle_ms, codes = await create(world, 7, ("a", 5), ("b", 8), ("c", 1))
    assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert throttle_ms == 2000
    assert set(world.quorum.image.topics) == {"a", "b"}
    world.clock.advance(2000)
    assert await create(world, 7, ("c", 1)) == (0, [0])


async def test_old_versions_of_clients_are_only_throttled(world: HandlerWorld) -> None:
    await world.set_quota("controller_mutation_rate", 1, user="alice")
    assert await create(world, 5, ("a", 5), ("b", 8), ("c", 1)) == (3000, [0, 0, 0])


async def test_an_invalid_topic_costs_nothing_and_a_validation_costs_as_much(world: HandlerWorld) -> None:
    await world.set_quota("controller_mutation_rate", 1, user="alice")
    assert (await create(world, 7, ("a", 20_000)))[1] == [ErrorCode.POLICY_VIOLATION]
    assert await create(world, 7, ("a", 12), validate_only=True) == (0, [0])
    assert await create(world, 7, ("a", 1)) == (1000, [ErrorCode.THROTTLING_QUOTA_EXCEEDED])


@pytest.mark.parametrize("version,is_refused", [(4, False), (5, True), (6, True)])
async def test_deleted_partitions_count(world: HandlerWorld, version: int, is_refused: bool) -> None:
    for name in ("a", "b"):
        await world.create(name, 12)
    await world.set_quota("controller_mutation_rate", 1, user="alice")
    alice = session()
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name) for name in "ab"] if version >= 6 else [],
        topic_names=list("ab") if version < 6 else [],
    )
    response = await world.call(request, DeleteTopicsResponse, version, session=alice)
    codes = [result.error_code for result in response.responses]
    assert codes == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_refused else 0]
    assert response.throttle_time_ms == alice.throttle_ms == (1000 if is_refused else 13_000)


@pytest.mark.parametrize("version,is_refused", [(2, False), (3, True)])
async def test_added_partitions_count(world: HandlerWorld, version: int, is_refused: bool) -> None:
    for name in ("a", "b"):
        await world.create(name, 3)
    await world.set_quota("controller_mutation_rate", 1, user="alice")
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, 15, None) for name in "ab"])
    response = await world.call(request, CreatePartitionsResponse, version, session=session())
    codes = [result.error_code for result in response.results]
    assert codes == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_refused else 0]
    assert response.throttle_time_ms == (1000 if is_refused else 13_000)


async def test_topics_that_are_created_when_a_client_asks_for_them_count(world: HandlerWorld) -> None:
    """The controller is on the same node; each topic has three partitions."""
    await world.set_quota("controller_mutation_rate", 1, user="alice")

    async def ask_for(name: str) -> int:
        request = MetadataRequest([MetadataRequestTopic(name=name)])
        (topic,) = (await world.call(request, MetadataResponse, 12, session=session())).topics
        return topic.error_code

    assert [await ask_for(name) for name in "abcde"] == [0, 0, 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert set(world.quorum.image.topics) == set("abcd")
    world.clock.advance(2000)
    assert await ask_for("e") == 0


async def test_topics_that_the_broker_itself_creates_cost_nothing(world: HandlerWorld) -> None:
    await world.set_quota("controller_mutation_rate", 0.001, user=None)
    for number in range(3):
        response = await world.call_local(create_request((f"t{number}", 3)))
        assert isinstance(response, CreateTopicsResponse)
        assert [topic.error_code for topic in response.topics] == [0]


async def test_a_forwarded_request_is_charged_to_its_client_and_not_to_the_broker(world: HandlerWorld) -> None:
    await world.set_quota("controller_mutation_rate", 1, user="alice")
    broker = Session(host="10.0.0.2", listener_name="CONTROLLER", local_host="10.0.0.1", is_controller_listener=True)
    codes = []
    for name in ("a", "b"):
        frame = request_body(create_request((name, 12)), 7)
        envelope = EnvelopeRequest(frame, encode_principal(ALICE), bytes((192, 0, 2, 50)))
        answer = await world.call(envelope, EnvelopeResponse, 0, session=broker)
        assert answer.response_data is not None
        response = decode(CreateTopicsResponse, 7, answer.response_data, 5)
        codes.append((response.throttle_time_ms, response.topics[0].error_code))
    assert codes == [(0, 0), (1000, ErrorCode.THROTTLING_QUOTA_EXCEEDED)]
    assert broker.throttle_ms == 0


class ControllerThatThrottles:
    """The active controller, on another node."""

    async def forward(self, frame: bytes, *, principal: Principal, client_host: str) -> bytes:
        """Answer that the quota is used up."""
        assert (principal, client_host) == (ALICE, "192.0.2.9")
        response = CreateTopicsResponse(throttle_time_ms=700, topics=[])
        return frame[4:8] + b"\0" + bytes(encode(response, 7))


@pytest.mark.parametrize("percentage,expected_ms", [(50, 700), (0.1, 1000)])
async def test_of_the_throttle_times_of_controller_and_broker_the_longer_one_counts(
    slow: HandlerWorld, percentage: float, expected_ms: int
) -> None:
    await slow.set_quota("request_percentage", percentage, user="alice")
    request = create_request()
    alice = session()
    elsewhere, channel = KnownController(), ControllerThatThrottles()
    services = replace(slow.services, metadata=cast("Any", elsewhere), controller_channel=cast("Any", channel))
    usage = RequestUsage(slow.quotas, alice, "app", stopwatch=Stopwatch(slow.clock), is_exempt=False)
    context = RequestContext(services, 19, 7, 1, "app", alice, services.authorizer, usage)
    answer = await _ask_controller(BROKER_BY_KEY[19], request, request_body(request, 7), context)
    assert decode(CreateTopicsResponse, 7, as_bytes(answer), 9).throttle_time_ms == expected_ms
    assert alice.throttle_ms == expected_ms
