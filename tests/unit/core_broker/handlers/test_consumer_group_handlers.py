"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over the real coordinator, with partitions in memory."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.cluster.partitions import Partitions
from core_broker.errors import ErrorCode
from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.groups.subscriptions import Topics
from core_broker.handlers import consumer_group_describe, consumer_group_heartbeat, join_group
from core_broker.handlers.context import RequestContext
from core_broker.handlers.session import Session
from core_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from core_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from core_broker.protocol.stored import metadata as stored
from core_broker.security.authorizer import Authorizer
from core_broker.security.operations import Operation, ResourceType
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.classic_group_world import subscription
from tests.support.consumer_group_world import topic_id, topics
from tests.support.fake_partitions import FakePartitions

T = topic_id("t")
SESSION = Session(host="10.0.0.1", listener_name="PLAINTEXT", local_host="10.0.0.2")


class Coordinator:
    """A coordinator of one shard and its handlers."""

    def __init__(self, partitions: FakePartitions, seen: Topics) -> None:
        self.clock = ManualClock()
        self.group_version = 1
        self.seen = seen
        self.authorizer: Authorizer | None = None
        self.groups = GroupCoordinator(
            settings=BrokerSettings(),
            clock=self.clock,
            partitions=cast(Partitions, partitions),
            partition_count=lambda: 1,
            topics=lambda: self.seen,
            group_overrides=lambda _group_id: {},
            group_version=lambda: self.group_version,
        )
        self.groups.become_leader(0, 0)

    def context(self, version: int = 1, *, key: int = 68) -> RequestContext:
        services = cast("Any", SimpleNamespace(groups=self.groups))
        return RequestContext(services, key, version, 1, "client", SESSION, self.authorizer)

    async def beat(self, member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest("g", member_id, epoch, **fields)
        return await consumer_group_heartbeat.handle(request, self.context())

    async def join(self, member_id: str = "m", **fields: Any) -> ConsumerGroupHeartbeatResponse:
        joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": [], **fields}
        return await self.beat(member_id, 0, **joining)

    def describe(self, *group_ids: str, operations: bool = False) -> list[DescribedGroup]:
        request = ConsumerGroupDescribeRequest(list(group_ids), operations)
        return consumer_group_describe.handle(request, self.context(key=69)).groups


@pytest.fixture
def partitions() -> FakePartitions:
    return FakePartitions()


@pytest.fixture
def start(partitions: FakePartitions) -> Iterator[Callable[[], Coordinator]]:
    """Starts a coordinator that reads what those before it have written."""
    started: list[Coordinator] = []

    def start() -> Coordinator:
        started.append(Coordinator(partitions, topics(t=2)))
        return started[-1]

    yield start
    for coordinator in started:
        coordinator.groups.close()


@pytest.fixture
def coordinator(start: Callable[[], Coordinator]) -> Coordinator:
    return start()


async def test_member_joins_and_is_told_its_partitions(coordinator: Coordinator) -> None:
    response = await coordinator.join()
    assert (response.error_code, response.member_epoch) == (0, 1)
    assert response.assignment is not None
    assert [(t.topic_id, t.partitions) for t in response.assignment.topic_partitions] == [(T, [0, 1])]


async def test_error_carries_code_and_message(coordinator: Coordinator) -> None:
    response = await coordinator.join(subscribed_topic_regex="(")
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert response.error_message is not None
    assert "missing )" in response.error_message


async def test_the_protocol_is_refused_until_every_coordinator_of_the_cluster_knows_it(
    coordinator: Coordinator,
) -> None:
    await coordinator.join()
    coordinator.group_version = 0
    response = await coordinator.join("other")
    assert response.error_code == coordinator.describe("g")[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "needs group.version=1" in (response.error_message or "")
    coordinator.group_version = 1
    assert (await coordinator.join("other")).error_code == 0


async def test_coordinator_that_does_not_lead_the_partition_says_so(coordinator: Coordinator) -> None:
    coordinator.groups.resign(0)
    assert (await coordinator.join()).error_code == ErrorCode.NOT_COORDINATOR
    assert coordinator.describe("g")[0].error_code == ErrorCode.NOT_COORDINATOR


async def test_answer_waits_until_the_change_is_committed(coordinator: Coordinator, partitions: FakePartitions) -> None:
    committed = partitions.get(OFFSETS_TOPIC, 0).hold()
    answer = asyncio.ensure_future(coordinator.join())
    await asyncio.sleep(0)
    assert not answer.done()
    assert partitions.get(OFFSETS_TOPIC, 0).log.end_offset == 5, "it was appended at once"
    committed.set()
    assert (await answer).member_epoch == 1


async def test_refused_write_is_an_error_that_makes_the_member_try_again(
    coordinator: Coordinator, partitions: FakePartitions
) -> None:
    partitions.get(OFFSETS_TOPIC, 0).error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert (await coordinator.join()).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    partitions.get(OFFSETS_TOPIC, 0).error = None
    assert (await coordinator.join()).error_code == 0
    assert partitions.get(OFFSETS_TOPIC, 0).log.end_offset == 5, "nothing is missing in the log"


async def test_members_go_on_with_a_coordinator_that_has_loaded_the_log(start: Callable[[], Coordinator]) -> None:
    before = start()
    await before.join("one")
    await before.join("two")
    await before.beat("one", 1)
    after = start()
    await after.groups.load_now(0)
    response = await after.beat("one", 1, topic_partitions=[TopicPartitions(T, [0])])
    assert (response.error_code, response.member_epoch) == (0, 2)
    response = await after.beat("two", 2)
    assert response.assignment is not None
    assert response.assignment.topic_partitions[0].partitions == [1]


async def test_silent_member_is_removed_by_the_timer(coordinator: Coordinator) -> None:
    runner = asyncio.ensure_future(coordinator.groups.run())
    try:
        await coordinator.join()
        coordinator.clock.advance(45_000)
        coordinator.groups.run_due()
        for _turn in range(20):  # the timers have tasks of their own
            await asyncio.sleep(0)
        assert coordinator.describe("g")[0].group_state == "Empty"
    finally:
        runner.cancel()
        await asyncio.gather(runner, return_exceptions=True)


async def test_describe_tells_each_group_or_why_not(coordinator: Coordinator) -> None:
    await coordinator.join()
    found, missing = coordinator.describe("g", "nobody")
    assert (found.group_id, found.group_state, found.group_epoch, found.error_code) == ("g", "Stable", 1, 0)
    assert [member.client_host for member in found.members] == ["/10.0.0.1"]
    assert (missing.group_id, missing.error_code) == ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)


async def test_authorized_operations_are_told_on_demand_only(coordinator: Coordinator) -> None:
    await coordinator.join()
    assert coordinator.describe("g")[0].authorized_operations == -(2**31)
    found, missing = coordinator.describe("g", "nobody", operations=True)
    assert found.authorized_operations == 0b1101_0100_1000
    assert missing.authorized_operations == -(2**31)


async def test_empty_group_can_be_deleted_and_does_not_come_back(start: Callable[[], Coordinator]) -> None:
    before = start()
    await before.join()
    await before.beat("m", -1)
    await before.groups.delete_group("g")
    after = start()
    await after.groups.load_now(0)
    assert after.describe("g")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


# --- with an authorizer -----------------------------------------------------------------------------------------------


def allowing(*rules: tuple[Operation, ResourceType, str]) -> Authorizer:
    """An authorizer that allows these things to everybody."""
    authorizer = Authorizer()
    authorizer.load(
        stored.AccessControlEntryRecord(bytes([number]) * 16, kind, name, 3, "User:*", "*", operation, 3)
        for number, (operation, kind, name) in enumerate(rules)
    )
    return authorizer


GROUP = (Operation.READ, ResourceType.GROUP, "g")
TOPIC = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
SECRET = (Operation.DESCRIBE, ResourceType.TOPIC, "secret")


@pytest.fixture
def of_two(partitions: FakePartitions) -> Iterator[Coordinator]:
    """A coordinator of a cluster with the topics `t` and `secret`."""
    coordinator = Coordinator(partitions, topics(t=2, secret=1))
    yield coordinator
    coordinator.groups.close()


async def test_one_topic_that_must_not_be_known_refuses_the_whole_subscription(of_two: Coordinator) -> None:
    of_two.authorizer = allowing(GROUP, TOPIC)
    for other in ("secret", "absent"):
        refused = await of_two.join(subscribed_topic_names=["t", other])
        assert (refused.error_code, refused.error_message) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert (await of_two.join()).error_code == 0


async def test_an_expression_matches_what_the_member_may_describe(of_two: Coordinator) -> None:
    of_two.authorizer = allowing(GROUP, TOPIC)
    response = await of_two.join(subscribed_topic_names=None, subscribed_topic_regex=".*")
    assert response.assignment is not None
    assert [t.topic_id for t in response.assignment.topic_partitions] == [T]


async def test_a_member_of_the_older_protocol_does_not_widen_the_expressions_of_others(
    partitions: FakePartitions, of_two: Coordinator
) -> None:
    of_two.authorizer = allowing(GROUP, TOPIC)
    await of_two.join(subscribed_topic_names=None, subscribed_topic_regex=".*")
    group = of_two.groups.find_group("g")
    assert isinstance(group, ConsumerGroup)
    of_two.seen = topics(t=2, secret=1, other=1)
    request = JoinGroupRequest(
        "g", 10_000, 10_000, "guest", None, "consumer", [JoinGroupRequestProtocol("range", subscription("t"))]
    )
    context = of_two.context(3, key=11)
    assert (await join_group.handle(request, context)).error_code == 0
    assert group.subscriptions.resolved == {".*": frozenset({"t"})}


async def test_a_group_with_a_topic_that_must_not_be_known_is_hidden(of_two: Coordinator) -> None:
    await of_two.join(subscribed_topic_names=["t", "secret"])
    describe = (Operation.DESCRIBE, ResourceType.GROUP, "g")
    of_two.authorizer = allowing(describe, TOPIC)
    (hidden,) = of_two.describe("g", operations=True)
    assert (hidden.error_code, hidden.members, hidden.group_state) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [], "")
    of_two.authorizer = allowing(describe, TOPIC, SECRET)
    shown, refused = sorted(of_two.describe("h", "g", operations=True), key=lambda group: group.group_id)
    assert (shown.error_code, len(shown.members), shown.authorized_operations) == (0, 1, 1 << Operation.DESCRIBE)
    assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_disabled_protocol_is_said_before_rights_are_asked_for(of_two: Coordinator) -> None:
    of_two.authorizer = allowing()
    assert (await of_two.join()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    of_two.group_version = 0
    assert (await of_two.join()).error_code == ErrorCode.UNSUPPORTED_VERSION
