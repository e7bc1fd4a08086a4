import asyncio

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import Committer
from core_broker.protocol.records import parse_header
from tests.support.group_coordinator_world import GROUP, GroupCoordinatorWorld, settle


@pytest.fixture
def world() -> GroupCoordinatorWorld:
    return GroupCoordinatorWorld()


async def test_committed_offset_is_found_again_and_survives_a_restart(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    await world.commit(7)
    assert world.committed() == 7
    await world.restart()
    assert world.committed() == 7


async def test_commit_without_a_group_creates_one_that_is_listed(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    group = world.coordinator.find_group(GROUP)
    assert group is not None
    assert (group.state_name, group.kind, group.protocol_type) == ("Empty", "classic", "")


@pytest.mark.parametrize("version,error", [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
async def test_commit_of_a_generation_of_no_group_is_refused(
    world: GroupCoordinatorWorld, version: int, error: ErrorCode
) -> None:
    committer = Committer(group_id=GROUP, member_id="m", generation_or_epoch=1)
    with pytest.raises(BrokerError, match=error.name):
        await world.commit(5, committer=committer, version=version)
    assert world.coordinator.find_group(GROUP) is None


async def test_offset_is_visible_only_once_it_is_committed(world: GroupCoordinatorWorld) -> None:
    committed = world.partition_of().hold()
    waiting = asyncio.ensure_future(world.commit(5))
    await settle()
    assert world.committed() is None
    committed.set()
    await waiting
    assert world.committed() == 5


async def test_commit_of_a_disconnected_client_is_visible_once_it_is_committed(world: GroupCoordinatorWorld) -> None:
    committed = world.partition_of().hold()
    waiting = asyncio.ensure_future(world.commit(5))
    await settle()
    waiting.cancel()
    await settle()
    assert world.committed() is None
    committed.set()
    assert world.committed() == 5


@pytest.mark.parametrize(
    "beneath,told",
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
async def test_refused_write_is_told_in_a_coordinators_words(
    world: GroupCoordinatorWorld, beneath: ErrorCode, told: ErrorCode
) -> None:
    world.partition_of().error = beneath
    with pytest.raises(BrokerError, match=told.name):
        await world.commit(5)
    assert world.committed() is None


async def test_note_too_long_is_refused() -> None:
    commits = GroupCoordinatorWorld(offset_metadata_max_bytes=10).coordinator.offset_commits
    assert commits.metadata_error("x" * 10) is ErrorCode.NONE
    assert commits.metadata_error(None) is ErrorCode.NONE
    assert commits.metadata_error("x" * 11) is ErrorCode.OFFSET_METADATA_TOO_LARGE


async def test_note_that_no_record_could_hold_is_refused_whatever_the_setting() -> None:
    commits = GroupCoordinatorWorld(offset_metadata_max_bytes=1_000_000).coordinator.offset_commits
    assert commits.metadata_error("x" * 32_767) is ErrorCode.NONE
    assert commits.metadata_error("ü" * 16_384) is ErrorCode.OFFSET_METADATA_TOO_LARGE


# --- transactions -----------------------------------------------------------------------------------------------------


async def test_transactional_offset_is_pending_until_the_transaction_commits(world: GroupCoordinatorWorld) -> None:
    await world.commit(1)
    await world.commit_in_transaction(5)
    offsets = world.coordinator.offset_commits.fetch(GROUP)
    assert world.committed() == 1
    assert offsets.is_unstable("orders", 0)
    await world.end_transaction(commit=True)
    assert world.committed() == 5
    assert not offsets.is_unstable("orders", 0)


async def test_offset_of_an_aborted_transaction_never_counts(world: GroupCoordinatorWorld) -> None:
    await world.commit(1)
    await world.commit_in_transaction(5)
    await world.end_transaction(commit=False)
    assert world.committed() == 1
    await world.restart()
    assert world.committed() == 1


@pytest.mark.parametrize("commit,offset", [(True, 5), (False, None)])
async def test_pending_offset_survives_a_restart_and_waits_for_its_marker(
    world: GroupCoordinatorWorld, commit: bool, offset: int | None
) -> None:
    await world.commit_in_transaction(5)
    await world.restart()
    assert world.committed() is None
    assert world.coordinator.offset_commits.fetch(GROUP).is_unstable("orders", 0)
    await world.end_transaction(commit=commit)
    assert world.committed() == offset
    await world.restart()
    assert world.committed() == offset


async def test_plain_commit_between_transactional_commit_and_marker_wins_before_and_after_a_restart(
    world: GroupCoordinatorWorld,
) -> None:
    await world.commit_in_transaction(5)
    await world.commit(9)
    await world.end_transaction(commit=True)
    assert world.committed() == 9
    await world.restart()
    assert world.committed() == 9


async def test_transactional_offset_is_written_in_the_producers_name(world: GroupCoordinatorWorld) -> None:
    await world.commit_in_transaction(5, producer_id=42)
    header = parse_header(world.partition_of().log.batches[-1])
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (42, 0, -1)


async def test_transactional_offset_that_was_not_written_is_not_pending(world: GroupCoordinatorWorld) -> None:
    world.partition_of().error = ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
        await world.commit_in_transaction(5)
    assert not world.coordinator.offset_commits.fetch(GROUP).is_unstable("orders", 0)


# --- deletion ---------------------------------------------------------------------------------------------------------


async def test_deleted_offset_is_gone_after_a_restart_too(world: GroupCoordinatorWorld) -> None:
    await world.commit(5)
    await world.commit(6, partition=1)
    errors = await world.coordinator.offset_commits.delete(GROUP, [("orders", 0), ("never", 3)])
    assert errors == [ErrorCode.NONE, ErrorCode.NONE]
    for _ in range(2):
        assert world.committed() is None
        assert world.committed(partition=1) == 6
        await world.restart()


async def test_offset_of_a_topic_that_members_read_is_not_deleted(world: GroupCoordinatorWorld) -> None:
    async with world.running():
        await world.stable_member()
        errors = await world.coordinator.offset_commits.delete(GROUP, [("orders", 0), ("other", 0)])
        assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]


async def test_offset_of_an_unknown_group_is_not_deleted(world: GroupCoordinatorWorld) -> None:
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        await world.coordinator.offset_commits.delete(GROUP, [("orders", 0)])
