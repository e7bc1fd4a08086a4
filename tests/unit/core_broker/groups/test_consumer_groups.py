"""The server of KIP-848 groups, with shards in memory."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from typing_extensions import override

from core_broker.cluster.coordinators import OFFSETS_TOPIC
from core_broker.cluster.partition import Partition
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import ClassicGroup, GroupLimits
from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.consumer_groups import ConsumerGroups
from core_broker.groups.group import Group, StoredRecord
from core_broker.groups.records import decode_record, group_key
from core_broker.groups.shard import Effect, Shard
from core_broker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from core_broker.protocol.messages.sync_group import SyncGroupRequest
from core_broker.protocol.stored.groups import GroupMetadataValue, MemberMetadata
from core_broker.service.clock import Clock, ManualClock
from core_broker.settings import BrokerSettings
from tests.support.consumer_group_world import topic_id, topics
from tests.support.fake_partitions import FakePartition

T = topic_id("t")


class MemoryShard(Shard):
    """A shard that keeps its log in a list."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(0, 0, cast(Partition, FakePartition(OFFSETS_TOPIC, 0)), clock=clock, timeout_ms=0)
        self.batches: list[list[StoredRecord]] = []
        self.failure: BrokerError | None = None
        self.held: asyncio.Event | None = None

    def hold(self) -> asyncio.Event:
        """Let writes wait until the event is set."""
        self.held = asyncio.Event()
        return self.held

    @override
    async def write(self, records: Sequence[StoredRecord], *, then: Effect | None = None) -> int:
        self.batches.append(list(records))
        if self.held is not None:
            await self.held.wait()
        if self.failure is not None:
            raise self.failure
        return len(self.batches)


class Owner:
    """The coordinator, as far as this part needs it: one shard, and notes of what was armed."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings
        self.time = ManualClock()
        self.clock: Clock = self.time
        self.shard = MemoryShard(self.clock)
        self.armed: list[float | None] = []
        self.unloaded: list[Group] = []

    def shard_for(self, group_id: str) -> Shard:
        return self.shard

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, clock=self.clock, limits=GroupLimits())

    def arm(self, shard: Shard, group: Group) -> None:
        self.armed.append(group.next_deadline())

    def reject_waiting(self, shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
        assert error is ErrorCode.REBALANCE_IN_PROGRESS
        self.unloaded.append(group)


class World:
    """A coordinator with two partitions of one topic."""

    def __init__(self, settings: BrokerSettings | None = None) -> None:
        self.topics = topics(t=2)
        self.overrides: dict[str, str] = {}
        self.owner = Owner(settings or BrokerSettings())
        self.shard = self.owner.shard
        self.groups = ConsumerGroups(self.owner, lambda: self.topics, lambda _group_id: self.overrides, lambda: 1)

    async def send(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id="g", **fields)
        return await self.groups.heartbeat(request, version=version, client_id="client", client_host="/127.0.0.1")

    async def join(self, member_id: str = "m", version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": [], **fields}
        return await self.send(version, member_id=member_id, **joining)

    async def refusal(self, **fields: Any) -> BrokerError:
        with pytest.raises(BrokerError) as refusal:
            await self.send(**fields)
        return refusal.value

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group


@pytest.fixture
def world() -> World:
    return World()


def partitions(assignment: Assignment | None) -> dict[bytes, list[int]]:
    assert assignment is not None
    return {topic.topic_id: topic.partitions for topic in assignment.topic_partitions}


# --- requests --------------------------------------------------------------------------------------------------------


async def test_join_is_answered_with_epoch_interval_and_assignment(world: World) -> None:
    response = await world.join()
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m", 1)
    assert response.heartbeat_interval_ms == 5000
    assert partitions(response.assignment) == {T: [0, 1]}


async def test_heartbeat_without_news_writes_nothing(world: World) -> None:
    await world.join()
    batches = len(world.shard.batches)
    response = await world.send(member_id="m", member_epoch=1)
    assert response.assignment is None
    assert len(world.shard.batches) == batches


async def test_one_change_is_one_batch(world: World) -> None:
    await world.join()
    assert len(world.shard.batches) == 1


async def test_owned_partitions_confirm_the_revocation(world: World) -> None:
    await world.join("one")
    await world.join("two")
    told = await world.send(member_id="one", member_epoch=1)
    assert partitions(told.assignment) == {T: [0]}
    await world.send(member_id="one", member_epoch=1, topic_partitions=[TopicPartitions(T, [0])])
    got = await world.send(member_id="two", member_epoch=2)
    assert partitions(got.assignment) == {T: [1]}


async def test_version_0_lets_the_coordinator_make_up_the_member_id(world: World) -> None:
    response = await world.join("", version=0)
    assert response.member_id
    assert set(world.group.members) == {response.member_id}


async def test_leave_is_answered_with_its_epoch(world: World) -> None:
    await world.join()
    response = await world.send(member_id="m", member_epoch=-1)
    assert (response.member_id, response.member_epoch) == ("m", -1)
    assert world.group.is_empty


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"member_id": "", "member_epoch": 0}, "MemberId can't be empty."),
        ({"member_id": "m", "member_epoch": 1, "instance_id": ""}, "InstanceId can't be empty."),
        ({"member_id": "m", "member_epoch": 1, "rack_id": ""}, "RackId can't be empty."),
        ({"member_id": "m", "member_epoch": -2}, "InstanceId can't be null."),
        ({"member_id": "m", "member_epoch": -3}, "MemberEpoch is invalid."),
        ({"member_id": "m"}, "RebalanceTimeoutMs must be provided in first request."),
        ({"member_id": "m", "rebalance_timeout_ms": 1}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"member_id": "m", "rebalance_timeout_ms": 1, "topic_partitions": []},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
    ],
)
async def test_incomplete_request_is_invalid(world: World, fields: dict[str, Any], message: str) -> None:
    refusal = await world.refusal(**fields)
    assert (refusal.code, refusal.message) == (ErrorCode.INVALID_REQUEST, message)


async def test_unsupported_assignor_is_refused_with_the_supported_ones(world: World) -> None:
    refusal = await world.refusal(member_id="m", member_epoch=1, server_assignor="cooperative")
    assert refusal.code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in refusal.message


async def test_heartbeat_to_an_unknown_group_finds_none(world: World) -> None:
    assert (await world.refusal(member_id="m", member_epoch=3)).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (await world.refusal(member_id="m", member_epoch=-1)).code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_refused_join_leaves_no_group_behind(world: World) -> None:
    with pytest.raises(BrokerError):
        await world.join(subscribed_topic_regex="(")
    assert world.shard.groups == {}


async def test_protocol_can_be_switched_off() -> None:
    world = World(BrokerSettings(group_coordinator_rebalance_protocols=("classic",)))
    assert (await world.refusal(member_id="m", member_epoch=1)).code == ErrorCode.UNSUPPORTED_VERSION


async def test_group_may_have_time_outs_of_its_own(world: World) -> None:
    world.overrides = {"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "60000"}
    response = await world.join()
    assert response.heartbeat_interval_ms == 7000
    assert world.group.next_deadline() == world.owner.clock.monotonic() + 60


# --- beside classic groups -------------------------------------------------------------------------------------------


async def test_empty_classic_group_is_replaced_and_its_record_deleted(world: World) -> None:
    world.shard.groups["g"] = classic_group(is_empty=True)
    await world.join()
    assert isinstance(world.shard.groups["g"], ConsumerGroup)
    assert world.shard.batches[0][0] == (group_key("g"), None)


async def test_group_of_another_kind_with_members_is_left_alone(world: World) -> None:
    world.shard.groups["g"] = group = classic_group(is_empty=False)
    with pytest.raises(BrokerError) as refusal:
        await world.join()
    assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.shard.groups["g"] is group


async def test_running_classic_group_becomes_a_consumer_group_with_its_members(world: World) -> None:
    world.shard.groups["g"] = former = running_classic_group()
    world.shard.groups["other"] = other = running_classic_group()
    response = await world.join("modern")
    assert partitions(response.assignment) == {}
    assert set(world.group.members) == {"classic", "modern"}
    assert world.owner.unloaded == [former]
    assert world.shard.groups["other"] is other
    assert world.shard.batches[0][0] == (b"\x00\x02\x00\x01g", None)
    assert [member.member_type for member in world.groups.describe("g").members] == [0, 1]


async def test_classic_group_stays_when_the_join_is_refused(world: World) -> None:
    world.shard.groups["g"] = former = running_classic_group()
    with pytest.raises(BrokerError):
        await world.join(subscribed_topic_regex="(")
    assert world.shard.groups["g"] is former
    assert world.owner.unloaded == []


async def test_migration_can_be_switched_off() -> None:
    world = World(BrokerSettings(group_consumer_migration_policy="disabled"))
    world.shard.groups["g"] = running_classic_group()
    with pytest.raises(BrokerError) as refusal:
        await world.join()
    assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_classic_requests_of_a_migrated_group_are_served(world: World) -> None:
    world.shard.groups["g"] = running_classic_group()
    assert not world.groups.has_members(world.shard, "g")
    await world.join("modern")
    assert world.groups.has_members(world.shard, "g")
    assert world.groups.heartbeat_classic("g", "classic", 7, None) is ErrorCode.REBALANCE_IN_PROGRESS
    request = JoinGroupRequest("g", 10_000, 60_000, "classic", protocol_type="consumer")
    request.protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    joined = await world.groups.join_classic(request, api_version=5, client_id="c", client_host="/h")
    assert (joined.generation_id, joined.leader, joined.members) == (8, "", [])
    synced = world.groups.sync_classic(SyncGroupRequest("g", 8, "classic"))
    assert synced.assignment == b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"
    batches = len(world.shard.batches)
    assert await world.groups.leave_classic("g", [("classic", None), ("stranger", None)]) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert set(world.group.members) == {"modern"}
    assert len(world.shard.batches) == batches + 1


SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"


def running_classic_group() -> ClassicGroup:
    group = ClassicGroup("g", clock=ManualClock(), limits=GroupLimits())
    assigned = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff"
    member = MemberMetadata("classic", None, "c", "/h", 60_000, 10_000, SUBSCRIPTION, assigned)
    group.restore(
        GroupMetadataValue(protocol_type="consumer", generation=7, protocol="range", leader="classic", members=[member])
    )
    return group


def classic_group(*, is_empty: bool) -> Group:
    return ClassicStandIn(is_empty)


class ClassicStandIn:
    """A group of the other kind."""

    group_id = "g"
    kind: Any = "classic"
    members: Mapping[str, object] = {}
    state_name = "Stable"
    protocol_type = "consumer"

    def __init__(self, is_empty: bool) -> None:
        self.is_empty = is_empty

    def check_commit(self, *_args: object, **_fields: object) -> None:
        """Anything goes."""

    def check_fetch(self, *_args: object) -> None:
        """Anything goes."""

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def offsets_expire_from_ms(self, committed_at_ms: int) -> int | None:
        return None

    def tombstones(self) -> list[StoredRecord]:
        return [(b"classic", None)]

    def next_deadline(self) -> float | None:
        return None


# --- failures, time, loading -----------------------------------------------------------------------------------------


async def test_failed_write_is_an_error_for_the_member_and_made_up_for_by_the_next(world: World) -> None:
    world.shard.failure = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(BrokerError):
        await world.join()
    world.shard.failure = None
    world.shard.batches.clear()
    response = await world.join()
    assert partitions(response.assignment) == {T: [0, 1]}
    assert [decode_kind(record) for record in world.shard.batches[0]] == [5, 3, 7, 6, 8]


def decode_kind(record: StoredRecord) -> int | None:
    decoded = decode_record(*record)
    assert decoded is not None
    return decoded[0].API_KEY


async def test_group_is_armed_when_it_gets_its_first_deadline_and_not_with_every_heartbeat(world: World) -> None:
    await world.join()
    world.owner.time.advance(1000)
    await world.send(member_id="m", member_epoch=1)
    assert world.owner.armed == [45.0]


async def test_deadline_removes_silent_members_and_stores_that(world: World) -> None:
    await world.join()
    world.owner.time.advance(45_000)
    await world.groups.on_deadline(world.shard, world.group)
    assert world.group.is_empty
    assert [value for _, value in world.shard.batches[-1]][:3] == [None, None, None]


async def test_early_deadline_changes_nothing(world: World) -> None:
    await world.join()
    batches = len(world.shard.batches)
    await world.groups.on_deadline(world.shard, world.group)
    assert len(world.shard.batches) == batches
    assert not world.group.is_empty


async def test_another_coordinator_loads_the_group_and_goes_on_with_it(world: World) -> None:
    await world.join("one")
    await world.join("two", subscribed_topic_regex="t.*")
    successor = World()
    replay(world, successor)
    successor.groups.on_loaded(successor.shard)
    assert successor.group.members == world.group.members
    assert successor.owner.armed == [45.0]
    response = await successor.send(member_id="one", member_epoch=1)
    assert partitions(response.assignment) == {T: [0]}


async def test_loading_forgets_a_group_that_was_deleted(world: World) -> None:
    await world.join()
    await world.send(member_id="m", member_epoch=-1)
    world.shard.batches.append(world.group.tombstones())
    successor = World()
    replay(world, successor)
    assert successor.shard.groups == {}


def replay(source: World, target: World) -> None:
    for batch in source.shard.batches:
        for record in batch:
            decoded = decode_record(*record)
            assert decoded is not None
            target.groups.replay(target.shard, *decoded)


async def test_change_that_is_too_large_for_a_batch_is_written_in_several(world: World) -> None:
    world.topics = topics(t=1)
    long_name = "m" * 2000
    for number in range(110):
        await world.join(f"{long_name}{number}")
    batches = len(world.shard.batches)
    world.owner.time.advance(45_000)
    await world.groups.on_deadline(world.shard, world.group)
    written = world.shard.batches[batches:]
    assert len(written) > 1
    assert all(sum(len(key) for key, _ in batch) <= 512 * 1024 for batch in written)
    successor = World()
    replay(world, successor)
    assert successor.group.is_empty


async def test_answer_about_a_change_that_is_being_written_waits_for_it(world: World) -> None:
    committed = world.shard.hold()
    joining = asyncio.ensure_future(world.join())
    await asyncio.sleep(0)
    again = asyncio.ensure_future(world.join())
    await asyncio.sleep(0)
    assert not again.done(), "the first join may yet be lost"
    committed.set()
    assert (await joining).member_epoch == (await again).member_epoch == 1
    assert len(world.shard.batches) == 1


async def test_failed_write_is_repeated_by_whoever_waits_for_it(world: World) -> None:
    committed = world.shard.hold()
    joining = asyncio.ensure_future(world.join())
    await asyncio.sleep(0)
    again = asyncio.ensure_future(world.join())
    await asyncio.sleep(0)
    world.shard.failure = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.shard.batches.clear()
    committed.set()
    with pytest.raises(BrokerError):
        await joining
    world.shard.failure = None
    assert (await again).member_epoch == 1
    assert [decode_kind(record) for record in world.shard.batches[0]] == [5, 3, 7, 6, 8]


async def test_what_cannot_be_stored_is_refused(world: World) -> None:
    for fields in ({"member_id": "m" * 40_000}, {"subscribed_topic_names": ["t" * 1000] * 600}):
        with pytest.raises(BrokerError) as refusal:
            await world.join(**fields)
        assert refusal.value.code == ErrorCode.INVALID_REQUEST


# --- describe --------------------------------------------------------------------------------------------------------


async def test_describe_tells_members_with_current_and_target_assignment(world: World) -> None:
    await world.join("one", instance_id="i", rack_id="r")
    await world.join("two")
    described = world.groups.describe("g")
    assert (described.group_id, described.group_state, described.assignor_name) == ("g", "Reconciling", "uniform")
    assert (described.group_epoch, described.assignment_epoch) == (2, 2)
    one, two = described.members
    assert (one.member_id, one.instance_id, one.rack_id, one.member_epoch) == ("one", "i", "r", 1)
    assert (one.client_id, one.client_host, one.subscribed_topic_names) == ("client", "/127.0.0.1", ["t"])
    assert [(t.topic_name, t.partitions) for t in one.assignment.topic_partitions] == [("t", [0, 1])]
    assert [(t.topic_name, t.partitions) for t in one.target_assignment.topic_partitions] == [("t", [0])]
    assert (two.assignment.topic_partitions, two.member_type, two.subscribed_topic_regex) == ([], 1, None)


async def test_describe_leaves_out_topics_that_are_gone(world: World) -> None:
    await world.join()
    world.topics = topics()
    (member,) = world.groups.describe("g").members
    assert member.assignment.topic_partitions == []


async def test_describe_names_topics_that_are_owned_but_not_subscribed_any_more(world: World) -> None:
    await world.join()
    await world.send(member_id="m", member_epoch=1, subscribed_topic_names=[])
    (member,) = world.groups.describe("g").members
    assert member.subscribed_topic_names == []
    assert member.assignment.topic_partitions == [], "what it is about to revoke is not assigned any more"


def test_describe_of_an_unknown_group_finds_none(world: World) -> None:
    with pytest.raises(BrokerError) as refusal:
        world.groups.describe("g")
    assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND
