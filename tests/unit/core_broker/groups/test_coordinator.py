"""The coordinator around the groups: shards, loading, time, deletion."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.groups.offset_commits import Committer
from core_broker.groups.records import group_key
from tests.support.group_coordinator_world import GROUP, GroupCoordinatorWorld, settle


@pytest.fixture
async def world() -> AsyncIterator[GroupCoordinatorWorld]:
    world = GroupCoordinatorWorld()
    async with world.running():
        yield world


def refusal(coordinator: GroupCoordinator, group_id: str) -> ErrorCode:
    try:
        coordinator.shard_for(group_id)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


# --- shards -----------------------------------------------------------------------------------------------------------


async def test_group_of_a_partition_led_elsewhere_is_refused() -> None:
    world = GroupCoordinatorWorld()
    world.coordinator.resign(world.coordinator.partition_of(GROUP))
    assert refusal(world.coordinator, GROUP) is ErrorCode.NOT_COORDINATOR


async def test_group_is_refused_while_its_partition_loads(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    fresh = world.new_coordinator()
    world.partition_of().leader_epoch = 1
    fresh.become_leader(world.partition_of().index, 1)
    assert refusal(fresh, GROUP) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert fresh.is_loading
    await fresh.load_now(world.partition_of().index)
    assert refusal(fresh, GROUP) is ErrorCode.NONE
    fresh.close()


async def test_loading_happens_by_itself_while_the_coordinator_runs() -> None:
    first = GroupCoordinatorWorld()
    await first.commit(5)
    world = GroupCoordinatorWorld()
    world.partitions = first.partitions
    world.coordinator = world._new_coordinator()
    async with world.running():
        await settle()
        assert world.committed() == 5


async def test_group_id_that_cannot_be_stored_is_refused() -> None:
    world = GroupCoordinatorWorld()
    assert refusal(world.coordinator, "") is ErrorCode.INVALID_GROUP_ID
    assert refusal(world.coordinator, "g" * 32_768) is ErrorCode.INVALID_GROUP_ID
    assert refusal(world.coordinator, "ü" * 16_384) is ErrorCode.INVALID_GROUP_ID
    assert refusal(world.coordinator, "g" * 32_767) is ErrorCode.NONE


async def test_older_leader_epoch_does_not_reload(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    world.coordinator.become_leader(world.partition_of().index, 0)
    assert world.committed() == 5


async def test_those_who_wait_are_sent_away_when_the_coordinator_resigns(world: GroupCoordinatorWorld) -> None:
    await world.stable_member()
    waiting = asyncio.ensure_future(world.join())
    await settle()
    world.coordinator.resign(world.partition_of().index)
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


async def test_those_who_wait_are_sent_away_when_the_broker_stops() -> None:
    world = GroupCoordinatorWorld()
    async with world.running():
        await world.stable_member()
        waiting = asyncio.ensure_future(world.join())
        await settle()
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


# --- classic groups through it ----------------------------------------------------------------------------------------


async def test_member_joins_and_is_assigned(world: GroupCoordinatorWorld) -> None:
    member_id = await world.stable_member()
    assert world.coordinator.classic.heartbeat(GROUP, member_id, 1, None) is ErrorCode.NONE


async def test_stable_group_survives_a_restart(world: GroupCoordinatorWorld) -> None:
    member_id = await world.stable_member()
    await world.restart()
    assert world.coordinator.classic.heartbeat(GROUP, member_id, 1, None) is ErrorCode.NONE
    assert (await world.sync(member_id, 1)).assignment == b"all"


async def test_member_that_stays_silent_after_a_restart_expires(world: GroupCoordinatorWorld) -> None:
    member_id = await world.stable_member()
    await world.restart()
    await world.advance(10_001)
    assert world.coordinator.classic.heartbeat(GROUP, member_id, 1, None) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_silent_member_expires_when_time_passes(world: GroupCoordinatorWorld) -> None:
    member_id = await world.stable_member()
    await world.advance(9_000)
    assert world.coordinator.classic.heartbeat(GROUP, member_id, 1, None) is ErrorCode.NONE
    await world.advance(9_000)
    assert world.coordinator.classic.heartbeat(GROUP, member_id, 1, None) is ErrorCode.NONE
    await world.advance(10_001)
    assert world.coordinator.classic.heartbeat(GROUP, member_id, 1, None) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_sync_is_answered_only_once_the_group_is_committed(world: GroupCoordinatorWorld) -> None:
    joined = await world.join()
    committed = world.partition_of().hold()
    waiting = asyncio.ensure_future(world.sync(joined.member_id, 1, {joined.member_id: b"all"}))
    await settle()
    assert not waiting.done()
    committed.set()
    assert (await waiting).assignment == b"all"


async def test_sync_tells_when_the_group_cannot_be_stored(world: GroupCoordinatorWorld) -> None:
    joined = await world.join()
    world.partition_of().error = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = await world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_leader_that_vanishes_during_its_sync_does_not_stop_the_others(world: GroupCoordinatorWorld) -> None:
    leader = await world.join()
    second = asyncio.ensure_future(world.join())
    await settle()
    await world.join(leader.member_id)
    follower = await second
    waiting = asyncio.ensure_future(world.sync(follower.member_id, 2))
    committed = world.partition_of().hold()
    leaving = asyncio.ensure_future(world.sync(leader.member_id, 2, {follower.member_id: b"1"}))
    await settle()
    leaving.cancel()
    committed.set()
    assert (await waiting).assignment == b"1"


async def test_session_timeout_out_of_bounds_is_refused() -> None:
    world = GroupCoordinatorWorld(group_min_session_timeout_ms=10_001)
    with pytest.raises(BrokerError, match="INVALID_SESSION_TIMEOUT"):
        await world.join()


async def test_stranger_neither_joins_nor_creates_a_group(world: GroupCoordinatorWorld) -> None:
    with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
        await world.join("stranger")
    assert world.coordinator.find_group(GROUP) is None
    assert world.coordinator.classic.heartbeat(GROUP, "stranger", 1, None) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await world.coordinator.classic.leave(GROUP, [("stranger", None)]) == [ErrorCode.UNKNOWN_MEMBER_ID]


# --- deletion and expiry ----------------------------------------------------------------------------------------------


async def test_deleted_group_is_gone_with_its_offsets_after_a_restart_too(world: GroupCoordinatorWorld) -> None:
    member_id = await world.stable_member()
    await world.commit(5, committer=Committer(group_id=GROUP, member_id=member_id, generation_or_epoch=1))
    await world.coordinator.classic.leave(GROUP, [(member_id, None)])
    await world.coordinator.delete_group(GROUP)
    await settle()
    for _ in range(2):
        assert world.coordinator.find_group(GROUP) is None
        assert world.committed() is None
        await world.restart()


async def test_group_with_members_is_not_deleted(world: GroupCoordinatorWorld) -> None:
    await world.stable_member()
    with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
        await world.coordinator.delete_group(GROUP)


async def test_unknown_group_is_not_deleted(world: GroupCoordinatorWorld) -> None:
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        await world.coordinator.delete_group(GROUP)


async def test_group_that_could_not_be_deleted_is_still_there(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    world.partition_of().error = ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
        await world.coordinator.delete_group(GROUP)
    assert world.committed() == 5


async def test_offsets_of_deleted_topics_are_forgotten(world: GroupCoordinatorWorld) -> None:
    await world.commit(5, topic="gone")
    await world.commit(6, topic="kept")
    world.coordinator.on_topics_deleted(["gone"])
    await settle()
    for _ in range(2):
        assert world.committed("gone") is None
        assert world.committed("kept") == 6
        await world.restart()


async def test_offsets_expire_after_the_retention_and_take_the_group_along(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    retention_ms = world.settings.offsets_retention_minutes * 60_000
    world.clock.advance(retention_ms - 1)
    await world.coordinator.expire()
    assert world.committed() == 5
    world.clock.advance(1)
    await world.coordinator.expire()
    for _ in range(2):
        assert world.committed() is None
        assert world.coordinator.find_group(GROUP) is None
        await world.restart()


async def test_offsets_of_a_group_with_members_expire_only_for_topics_it_no_longer_reads(
    world: GroupCoordinatorWorld,
) -> None:
    member_id = await world.stable_member()
    committer = Committer(group_id=GROUP, member_id=member_id, generation_or_epoch=1)
    await world.commit(5, topic="orders", committer=committer)
    await world.commit(6, topic="no longer read", committer=committer)
    world.clock.advance(world.settings.offsets_retention_minutes * 60_000)
    await world.coordinator.expire()
    assert world.committed("orders") == 5
    assert world.committed("no longer read") is None


async def test_offset_with_its_own_expiry_goes_earlier(world: GroupCoordinatorWorld) -> None:
    await world.commit(5, expires_at_ms=world.clock.now_ms() + 1000)
    world.clock.advance(1000)
    await world.coordinator.expire()
    assert world.committed() is None


async def test_offsets_pending_in_a_transaction_keep_their_group(world: GroupCoordinatorWorld) -> None:
    await world.commit_in_transaction(5)
    world.clock.advance(world.settings.offsets_retention_minutes * 60_000)
    await world.coordinator.expire()
    assert world.coordinator.find_group(GROUP) is not None


async def test_group_somebody_is_about_to_join_does_not_expire(world: GroupCoordinatorWorld) -> None:
    assert (await world.join(version=4)).error_code == ErrorCode.MEMBER_ID_REQUIRED
    await world.coordinator.expire()
    assert world.coordinator.find_group(GROUP) is not None
    await world.advance(10_001)
    await world.coordinator.expire()
    assert world.coordinator.find_group(GROUP) is None


async def test_group_stored_late_does_not_bring_a_deleted_group_back(world: GroupCoordinatorWorld) -> None:
    member_id = await world.stable_member()
    await world.coordinator.classic.leave(GROUP, [(member_id, None)])  # the empty group is yet to be written
    await world.coordinator.delete_group(GROUP)
    await settle()
    last = [record for record in world.partition_of().log.records() if record.key == group_key(GROUP)][-1]
    assert last.value is None


async def test_unreadable_record_does_not_keep_the_others_from_loading(
    world: GroupCoordinatorWorld, caplog: pytest.LogCaptureFixture
) -> None:
    await world.coordinator.shard_for(GROUP).write([(b"\x00\x01\xff", b"\x00\x03"), (b"\x00\x63", b"")])
    await world.commit(5)
    await world.restart()
    assert world.committed() == 5
    assert "unreadable record" in caplog.text
    assert "unknown kind" in caplog.text


async def test_marker_written_while_loading_is_not_missed(world: GroupCoordinatorWorld) -> None:
    await world.commit_in_transaction(5)
    partition = world.partition_of()
    for number in range(500):
        await world.commit(number, topic="many")
    fresh = world.new_coordinator()
    partition.leader_epoch = 1
    fresh.become_leader(partition.index, 1)
    loading = asyncio.ensure_future(fresh.load_now(partition.index))
    await asyncio.sleep(0)
    assert fresh.is_loading
    offset = await partition.append_marker(7, 0, commit=True, coordinator_epoch=0)
    fresh.complete_transaction(partition.index, 7, commit=True, log_offset=offset)
    await loading
    found = fresh.offset_commits.fetch(GROUP).get("orders", 0)
    assert found is not None
    assert found.offset == 5
    fresh.close()
