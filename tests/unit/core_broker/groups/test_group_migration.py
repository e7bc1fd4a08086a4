"""Running groups that change their protocol, through the coordinator and over its restarts."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.offset_commits import Committer
from core_broker.groups.records import decode_record
from core_broker.protocol.records import parse_header, read_records
from tests.support.both_kinds_world import WHOLE_TOPIC, BothKindsWorld, assigned, numbers_in
from tests.support.group_coordinator_world import GROUP, settle


@pytest.fixture
async def world() -> AsyncIterator[BothKindsWorld]:
    world = BothKindsWorld()
    async with world.running():
        yield world


async def mixed(world: BothKindsWorld) -> tuple[str, int]:
    """A consumer group of a guest and `new`, with a partition each; returns the guest's id and generation."""
    joined = await world.join()
    await world.sync(joined.member_id, joined.generation_id, {joined.member_id: WHOLE_TOPIC})
    await world.beat()
    again = await world.join(joined.member_id)
    assert numbers_in((await world.sync(joined.member_id, again.generation_id)).assignment) == [0]
    await world.beat(again.generation_id)
    return joined.member_id, again.generation_id


def classic_of(world: BothKindsWorld) -> ClassicGroup:
    assert isinstance(world.group, ClassicGroup)
    return world.group


# --- downgrade --------------------------------------------------------------------------------------------------------


async def test_group_is_classic_again_when_the_last_member_of_the_new_protocol_leaves(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    await world.commit(5, committer=Committer(group_id=GROUP, member_id=guest, generation_or_epoch=generation))
    answer = await world.beat(-1)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "new", -1)
    group = classic_of(world)
    assert (group.state_name, group.generation, set(group.members)) == ("PreparingRebalance", generation, {guest})
    assert world.committed() == 5


async def test_members_go_on_with_their_generation_and_share_what_became_free(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    await world.beat(-1)
    classic = world.coordinator.classic
    assert classic.heartbeat(GROUP, guest, generation, None) is ErrorCode.REBALANCE_IN_PROGRESS
    await world.commit(6, committer=Committer(group_id=GROUP, member_id=guest, generation_or_epoch=generation))
    joined = await world.join(guest)
    assert (joined.generation_id, joined.leader) == (generation + 1, guest)
    synced = await world.sync(guest, generation + 1, {guest: WHOLE_TOPIC})
    assert numbers_in(synced.assignment) == [0, 1]
    assert classic.heartbeat(GROUP, guest, generation + 1, None) is ErrorCode.NONE


async def test_members_keep_their_partitions_until_they_have_joined_again(world: BothKindsWorld) -> None:
    guest, _ = await mixed(world)
    await world.beat(-1)
    assert numbers_in(classic_of(world).members[guest].assignment) == [0]


async def test_group_is_classic_again_when_the_session_of_the_last_member_ends(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    for _ in range(9):
        await world.advance(5_000)
        world.coordinator.classic.heartbeat(GROUP, guest, generation, None)
    assert set(classic_of(world).members) == {guest}


async def test_sessions_of_the_classic_group_are_timed(world: BothKindsWorld) -> None:
    await mixed(world)
    await world.beat(-1)
    await world.advance(10_000)
    assert classic_of(world).is_empty


async def test_operator_who_removes_the_last_static_member_makes_the_group_classic(world: BothKindsWorld) -> None:
    joined = await world.join()
    await world.sync(joined.member_id, joined.generation_id, {joined.member_id: WHOLE_TOPIC})
    await world.beat(instance_id="i")
    assert await world.coordinator.classic.leave(GROUP, [("", "i")]) == [ErrorCode.NONE]
    assert set(classic_of(world).members) == {joined.member_id}


async def test_group_stays_while_another_member_of_the_new_protocol_is_there(world: BothKindsWorld) -> None:
    await mixed(world)
    await world.beat(member_id="other")
    await world.beat(-1)
    assert world.group.kind == "consumer"


async def test_static_member_that_may_come_back_keeps_the_group_what_it_is(world: BothKindsWorld) -> None:
    joined = await world.join()
    await world.sync(joined.member_id, joined.generation_id, {joined.member_id: WHOLE_TOPIC})
    await world.beat(instance_id="i")
    await world.beat(-2, instance_id="i")
    assert world.group.kind == "consumer"


async def test_classic_member_that_takes_over_from_the_last_static_one_disturbs_nobody(world: BothKindsWorld) -> None:
    joined = await world.join()
    await world.sync(joined.member_id, joined.generation_id, {joined.member_id: WHOLE_TOPIC})
    await world.beat(instance_id="i")
    again = await world.join(joined.member_id)
    await world.beat(again.generation_id, instance_id="i")
    successor = await world.join(instance_id="i")
    assert (successor.error_code, successor.generation_id) == (0, again.generation_id)
    assert classic_of(world).state_name == "Stable"
    synced = await world.sync(successor.member_id, successor.generation_id)
    assert numbers_in(synced.assignment) == [1]
    classic = world.coordinator.classic
    assert classic.heartbeat(GROUP, joined.member_id, again.generation_id, None) is ErrorCode.NONE


async def test_newcomer_with_another_common_assignor_is_welcome_at_once(world: BothKindsWorld) -> None:
    guest, _ = await mixed(world)
    assert isinstance(world.group, ConsumerGroup)
    known = world.group.members[guest].classic
    assert known is not None
    await world.beat(-1)
    assert classic_of(world).members[guest].protocols == known.protocols


# --- the policy -------------------------------------------------------------------------------------------------------


async def test_group_goes_on_with_its_guests_where_downgrade_is_not_allowed() -> None:
    world = BothKindsWorld(group_consumer_migration_policy="upgrade")
    async with world.running():
        guest, _ = await mixed(world)
        await world.beat(-1)
        assert world.group.kind == "consumer"
        again = await world.join(guest)
        assert numbers_in((await world.sync(guest, again.generation_id)).assignment) == [0, 1]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
async def test_classic_group_refuses_the_new_protocol_where_upgrade_is_not_allowed(policy: str) -> None:
    world = BothKindsWorld(group_consumer_migration_policy=policy)
    async with world.running():
        await world.stable_member()
        with pytest.raises(BrokerError) as refusal:
            await world.beat()
        assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND
        assert refusal.value.message == (
            f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled."
        )
        assert world.group.kind == "classic"


async def test_group_of_more_members_than_a_classic_one_may_have_stays() -> None:
    world = BothKindsWorld(group_max_size=1)
    async with world.running():
        await mixed(world)
        other = await world.join()
        assert other.error_code == 0
        await world.beat(-1)
        assert world.group.kind == "consumer"


async def test_custom_assignor_that_tells_more_than_partitions_is_not_replaced(world: BothKindsWorld) -> None:
    joined = await world.join()
    await world.sync(joined.member_id, 1, {joined.member_id: assigned(0, 1, user_data=b"x")})
    with pytest.raises(BrokerError, match="an unsupported custom assignor is in use") as refusal:
        await world.beat()
    assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (world.group.kind, world.group.state_name) == ("classic", "Stable")


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_downgrade_is_one_batch_with_the_classic_group_last(world: BothKindsWorld) -> None:
    await mixed(world)
    batches = len(world.partition_of().log.batches)
    await world.beat(-1)
    (batch,) = world.partition_of().log.batches[batches:]
    kinds = []
    for record in read_records(batch, parse_header(batch)):
        found = decode_record(record.key or b"", record.value)
        assert found is not None
        kinds.append((found[0].API_KEY, found[1] is None))
    assert kinds[:-1] == [(8, True), (7, True), (5, True)] * 2 + [(6, True), (3, True)]
    assert kinds[-1] == (2, False)


async def test_downgraded_group_is_the_same_after_a_restart(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    await world.commit(5, committer=Committer(group_id=GROUP, member_id=guest, generation_or_epoch=generation))
    await world.beat(-1)
    before = classic_of(world)
    await world.restart()
    after = classic_of(world)
    assert (after.state_name, after.generation, after.protocol_name) == ("PreparingRebalance", generation, "range")
    assert after.members == before.members
    assert world.committed() == 5
    classic = world.coordinator.classic
    assert classic.heartbeat(GROUP, guest, generation, None) is ErrorCode.REBALANCE_IN_PROGRESS


async def test_group_that_was_downgraded_and_upgraded_again_is_loaded_as_what_it_is(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    await world.beat(-1)
    await world.beat(member_id="later")
    assert isinstance(world.group, ConsumerGroup)
    before = world.group
    assert before.members[guest].assigned == {b"o" * 16: frozenset({0})}
    await world.restart()
    assert isinstance(world.group, ConsumerGroup)
    assert world.group.members == before.members
    assert world.group.epoch == generation + 1


async def test_downgrade_that_cannot_be_stored_is_taken_back_without_the_member(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    world.partition_of().error = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(BrokerError):
        await world.beat(-1)
    assert isinstance(world.group, ConsumerGroup)
    assert (set(world.group.members), world.group.epoch) == ({guest}, generation + 1)
    assert world.group.next_deadline() == world.clock.monotonic() + 10, "it is not tried over and over"


async def test_downgrade_that_could_not_be_stored_is_tried_again_when_a_guest_comes(world: BothKindsWorld) -> None:
    guest, generation = await mixed(world)
    world.partition_of().error = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(BrokerError):
        await world.beat(-1)
    world.partition_of().error = None
    joined = await world.join(guest)
    assert (joined.error_code, joined.generation_id) == (0, generation + 1)
    assert classic_of(world).state_name == "Stable"
    assert numbers_in((await world.sync(guest, generation + 1)).assignment) == [0, 1]
    await world.restart()
    assert (classic_of(world).state_name, classic_of(world).generation) == ("Stable", generation + 1)


async def test_downgrade_that_is_lost_after_it_was_appended_is_made_up_for(world: BothKindsWorld) -> None:
    guest, _ = await mixed(world)
    world.partition_of().hold()
    leaving = asyncio.ensure_future(world.beat(-1))
    await settle()
    assert world.group.kind == "classic"
    waiting = asyncio.ensure_future(world.join("", version=3))
    await settle()
    leaving.cancel()
    await settle()
    assert (await waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(world.group, ConsumerGroup)
    world.partition_of().held = None
    await world.beat(member_id="later")
    members = world.group.members
    assert set(members) == {guest, "later"}
    await world.restart()
    assert isinstance(world.group, ConsumerGroup)
    assert world.group.members == members
    await world.coordinator.classic.leave(GROUP, [(guest, None), ("later", None)])
    await world.coordinator.delete_group(GROUP)
    await world.restart()
    assert world.coordinator.find_group(GROUP) is None, "no trace of the classic group is left"
