"""Groups when the leader of their partition changes, also in the middle of a request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.groups.offset_commits import Committer
from core_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.group_coordinator_world import GROUP, GroupCoordinatorWorld, settle


@pytest.fixture
async def world() -> AsyncIterator[GroupCoordinatorWorld]:
    world = GroupCoordinatorWorld()
    async with world.running():
        yield world


def elect_again(world: GroupCoordinatorWorld, coordinator: GroupCoordinator | None = None) -> None:
    """The partition gets a new leader epoch; the same coordinator is elected again, or another one."""
    partition = world.partition_of()
    partition.leader_epoch += 1
    world.coordinator.resign(partition.index)
    (coordinator or world.coordinator).become_leader(partition.index, partition.leader_epoch)


async def code_of(request: Awaitable[object]) -> int:
    """The error of a request, whether it is raised or in the response."""
    try:
        response = await request
    except BrokerError as error:
        return error.code
    return getattr(response, "error_code", ErrorCode.NONE)


def state_of(coordinator: GroupCoordinator) -> object:
    """What clients can see of the group."""
    group = coordinator.find_group(GROUP)
    offsets = coordinator.offset_commits.fetch(GROUP)
    return (
        None if group is None else (group.kind, group.state_name, sorted(group.members)),
        {topic: {index: each.offset for index, each in found.items()} for topic, found in offsets.all().items()},
        offsets.is_unstable("orders", 0),
    )


async def commit(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)


async def commit_in_transaction(world: GroupCoordinatorWorld) -> None:
    await world.commit_in_transaction(5)


async def delete_offsets(world: GroupCoordinatorWorld) -> object:
    return await world.coordinator.offset_commits.delete(GROUP, [("payments", 0)])


async def delete_group(world: GroupCoordinatorWorld) -> None:
    await world.coordinator.delete_group(GROUP)


async def join_consumer_group(world: GroupCoordinatorWorld) -> object:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    return await world.coordinator.consumer_groups.heartbeat(request, version=1, client_id="c", client_host="/h")


async def join_and_sync(world: GroupCoordinatorWorld) -> object:
    joined = await world.join()
    return await world.sync(joined.member_id, joined.generation_id, {joined.member_id: b"all"})


REQUESTS = [commit, commit_in_transaction, delete_offsets, delete_group, join_consumer_group, join_and_sync]
Request = Callable[[GroupCoordinatorWorld], Awaitable[object]]


@pytest.mark.parametrize("is_committed_first", [True, False])
@pytest.mark.parametrize("request_of", REQUESTS)
async def test_request_that_spans_a_change_of_leader_gets_not_coordinator_and_changes_nothing(
    world: GroupCoordinatorWorld, request_of: Request, is_committed_first: bool
) -> None:
    await world.commit(1, topic="payments")
    committed = world.partition_of().hold()
    waiting = asyncio.ensure_future(code_of(request_of(world)))
    await settle()
    assert not waiting.done()
    if is_committed_first:
        committed.set()  # the request has not noticed yet
    elect_again(world)
    committed.set()
    assert await waiting == ErrorCode.NOT_COORDINATOR
    await settle()
    loaded = state_of(world.coordinator)
    await world.restart()
    assert loaded == state_of(world.coordinator)


@pytest.mark.parametrize("request_of", REQUESTS)
async def test_request_in_a_new_epoch_that_the_coordinator_does_not_know_of_writes_nothing(
    world: GroupCoordinatorWorld, request_of: Request
) -> None:
    await world.commit(1, topic="payments")
    partition = world.partition_of()
    partition.leader_epoch += 1
    end = partition.log.end_offset
    assert await code_of(request_of(world)) == ErrorCode.NOT_COORDINATOR
    assert partition.log.end_offset == end


async def test_join_that_waits_for_other_members_is_sent_to_the_new_coordinator(world: GroupCoordinatorWorld) -> None:
    await world.stable_member()
    waiting = asyncio.ensure_future(world.join())
    await settle()
    elect_again(world)
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


async def test_members_and_offsets_are_kept_by_the_next_coordinator(world: GroupCoordinatorWorld) -> None:
    member = await world.stable_member()
    committer = Committer(group_id=GROUP, member_id=member, generation_or_epoch=1)
    await world.commit(5, committer=committer)
    former, successor = world.coordinator, world.new_coordinator()
    elect_again(world, successor)
    await successor.load_now(world.partition_of().index)
    world.coordinator = successor
    assert world.committed() == 5
    assert successor.classic.heartbeat(GROUP, member, 1, None) is ErrorCode.NONE
    await world.commit(6, committer=committer)
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        await world.commit(7, committer=Committer(group_id=GROUP, member_id=member, generation_or_epoch=0))
    assert world.committed() == 6
    with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
        former.offset_commits.fetch(GROUP)
    successor.close()
    world.coordinator = former


async def test_offsets_are_not_shown_before_what_earlier_leaders_wrote_is_committed(
    world: GroupCoordinatorWorld,
) -> None:
    await world.commit(1)
    committed = world.partition_of().hold()
    waiting = asyncio.ensure_future(code_of(world.commit(5)))
    await settle()
    elect_again(world)
    await settle()
    with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        world.committed()
    committed.set()
    await settle()
    assert world.committed() == 5
    assert await waiting == ErrorCode.NOT_COORDINATOR


async def test_load_stops_when_the_broker_resigns(world: GroupCoordinatorWorld) -> None:
    for number in range(500):
        await world.commit(number)
    elect_again(world)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.coordinator.is_loading
    world.coordinator.resign(world.partition_of().index)
    await settle()
    assert list(world.coordinator.loaded_shards()) == [world.coordinator.shard_for("others")]


async def test_commit_that_timed_out_is_visible_as_soon_as_it_is_committed() -> None:
    world = GroupCoordinatorWorld(offsets_commit_timeout_ms=1)
    committed = world.partition_of().hold()
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.commit(5)
    assert world.committed() is None
    committed.set()
    assert world.committed() == 5
    world.coordinator.close()


async def test_late_commit_does_not_undo_a_deletion_that_follows_it_in_the_log() -> None:
    world = GroupCoordinatorWorld(offsets_commit_timeout_ms=1)
    await world.commit(1)
    committed = world.partition_of().hold()
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.commit(5)
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.coordinator.offset_commits.delete(GROUP, [("orders", 0)])
    assert world.committed() == 1
    committed.set()
    assert world.committed() is None
    world.coordinator.close()


async def test_transactional_offset_that_was_not_written_is_not_pending(world: GroupCoordinatorWorld) -> None:
    await world.commit(1)
    world.partition_of().error = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        await world.commit_in_transaction(5)
    world.partition_of().error = None
    await world.end_transaction(commit=True)
    assert world.committed() == 1


async def test_marker_takes_effect_once_it_is_committed_even_if_its_sender_no_longer_waits(
    world: GroupCoordinatorWorld,
) -> None:
    await world.commit_in_transaction(5)
    committed = world.partition_of().hold()
    ending = asyncio.ensure_future(world.end_transaction(commit=True))
    await settle()
    ending.cancel()
    partition = world.partition_of()
    world.coordinator.complete_transaction(partition.index, 7, commit=True, log_offset=partition.log.end_offset - 1)
    assert world.committed() is None
    committed.set()
    assert world.committed() == 5
