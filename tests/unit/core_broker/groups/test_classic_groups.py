"""Classic and KIP-848 members of the same group, served side by side."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import Committer
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.support.both_kinds_world import WHOLE_TOPIC, BothKindsWorld
from tests.support.group_coordinator_world import GROUP, settle


@pytest.fixture
async def world() -> AsyncIterator[BothKindsWorld]:
    world = BothKindsWorld()
    async with world.running():
        yield world


async def test_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets(world: BothKindsWorld) -> None:
    member_id = await world.stable_member()
    await world.commit(5, committer=Committer(group_id=GROUP, member_id=member_id, generation_or_epoch=1))
    await world.coordinator.classic.leave(GROUP, [(member_id, None)])
    await settle()
    assert (await world.beat()).error_code == 0
    assert (world.group.kind, world.committed()) == ("consumer", 5)


async def test_empty_consumer_group_becomes_a_classic_group_and_stays_one_after_a_restart(
    world: BothKindsWorld,
) -> None:
    await world.beat()
    await world.beat(epoch=-1)
    await world.stable_member()
    assert world.group.kind == "classic"
    await world.restart()
    assert world.group.kind == "classic"


async def test_members_of_the_old_protocol_stay_when_the_first_of_the_new_one_joins(world: BothKindsWorld) -> None:
    joined = await world.join()
    await world.sync(joined.member_id, 1, {joined.member_id: WHOLE_TOPIC})
    answer = await world.beat()
    assert answer.error_code == 0
    assert world.group.kind == "consumer"
    classic = world.coordinator.classic
    assert classic.heartbeat(GROUP, joined.member_id, 1, None) is ErrorCode.REBALANCE_IN_PROGRESS
    again = await world.join(joined.member_id)
    assert again.error_code == 0
    synced = await world.sync(joined.member_id, again.generation_id)
    assert synced.error_code == 0
    assert await classic.leave(GROUP, [(joined.member_id, None)]) == [ErrorCode.NONE]


async def test_those_who_wait_in_the_classic_group_join_again_when_it_migrates(world: BothKindsWorld) -> None:
    joined = await world.join()
    await world.sync(joined.member_id, 1, {joined.member_id: WHOLE_TOPIC})
    waiting = asyncio.ensure_future(world.join())
    await settle()
    await world.beat()
    assert (await waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("name", ["member_id", "group_instance_id", "protocol_type"])
async def test_name_too_long_to_be_stored_is_refused(world: BothKindsWorld, name: str) -> None:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    setattr(request, name, "x" * 40_000)
    with pytest.raises(BrokerError, match="INVALID_REQUEST"):
        await world.coordinator.classic.join(request, api_version=9, client_id="", client_host="")


async def test_protocols_that_would_fill_the_memory_are_refused(world: BothKindsWorld) -> None:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", bytes(9 * 1024 * 1024))],
    )
    with pytest.raises(BrokerError, match="INVALID_REQUEST"):
        await world.coordinator.classic.join(request, api_version=9, client_id="", client_host="")


async def test_longest_client_id_makes_a_member_id_that_can_be_stored(world: BothKindsWorld) -> None:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    client_id = "ü" * 16_383
    joined = await world.coordinator.classic.join(request, api_version=3, client_id=client_id, client_host="")
    synced = await world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert (synced.error_code, synced.assignment) == (0, b"all")


async def test_members_hear_of_a_write_that_failed_for_an_unknown_reason(
    world: BothKindsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = await world.join()
    monkeypatch.setattr(world.partition_of(), "log", None)
    synced = await world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert synced.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
