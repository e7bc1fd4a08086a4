"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup over the wire, in all their versions."""

import asyncio

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from core_broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.group_handler_world import GROUP, GroupHandlers


@pytest.mark.parametrize("version", range(4))
async def test_old_client_joins_at_once(broker: GroupHandlers, version: int) -> None:
    answer = await broker.join(version=version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.leader == answer.member_id
    assert len(answer.members) == 1


@pytest.mark.parametrize("version", range(4, 10))
async def test_newer_client_is_told_its_id_first(broker: GroupHandlers, version: int) -> None:
    first = await broker.join(version=version)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id
    second = await broker.join(first.member_id, version=version)
    assert (second.error_code, second.generation_id, second.member_id) == (0, 1, first.member_id)


@pytest.mark.parametrize("version,name", [(6, ""), (7, None)])
async def test_refused_join_has_no_protocol(broker: GroupHandlers, version: int, name: str | None) -> None:
    answer = await broker.join("stranger", version=version)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.protocol_name == name
    assert answer.member_id == "stranger"


async def test_join_of_a_group_without_a_name_is_refused(broker: GroupHandlers) -> None:
    answer = await broker.call(JoinGroupRequest(session_timeout_ms=10_000), JoinGroupResponse, 5)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


async def test_member_id_begins_with_the_instance_or_client_id(broker: GroupHandlers) -> None:
    answer = await broker.join(instance_id="till-7")
    assert answer.member_id.startswith("till-7-")


async def test_join_waits_for_the_others_without_holding_up_the_broker(broker: GroupHandlers) -> None:
    first = await broker.stable_member()
    waiting = asyncio.ensure_future(broker.join(version=3))
    await asyncio.sleep(0)
    beat = await broker.call(HeartbeatRequest(GROUP, 1, first), HeartbeatResponse, 3)
    assert beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    await broker.join(first, version=3)
    assert (await waiting).generation_id == 2


async def test_sync_of_version_five_must_name_the_protocol(broker: GroupHandlers) -> None:
    joined = await broker.join(version=3)
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=joined.member_id)
    answer = await broker.call(request, SyncGroupResponse, 5)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    request.protocol_type, request.protocol_name = "consumer", "range"
    answer = await broker.call(request, SyncGroupResponse, 5)
    assert (answer.error_code, answer.protocol_name) == (0, "range")


async def test_heartbeat_succeeds_while_the_group_is_loaded(broker: GroupHandlers) -> None:
    """As in Kafka. aiokafka's members end when the new coordinator asks them to wait."""
    member_id = await broker.stable_member()
    coordinator = broker.coordinator
    coordinator.become_leader(coordinator.partition_of(GROUP), 1)
    assert coordinator.is_loading
    answer = await broker.call(HeartbeatRequest(GROUP, 1, member_id), HeartbeatResponse, 4)
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(5))
async def test_heartbeat_in_every_version(broker: GroupHandlers, version: int) -> None:
    member_id = await broker.stable_member()
    answer = await broker.call(HeartbeatRequest(GROUP, 1, member_id), HeartbeatResponse, version)
    assert answer.error_code == 0
    stranger = await broker.call(HeartbeatRequest(GROUP, 1, "stranger"), HeartbeatResponse, version)
    assert stranger.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3))
async def test_old_client_leaves_alone(broker: GroupHandlers, version: int) -> None:
    member_id = await broker.stable_member()
    stranger = await broker.call(LeaveGroupRequest(GROUP, "stranger"), LeaveGroupResponse, version)
    assert stranger.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    answer = await broker.call(LeaveGroupRequest(GROUP, member_id), LeaveGroupResponse, version)
    assert answer.error_code == 0


@pytest.mark.parametrize("version", range(3, 6))
async def test_many_leave_at_once_each_with_its_own_answer(broker: GroupHandlers, version: int) -> None:
    await broker.stable_member(instance_id="till-7")
    request = LeaveGroupRequest(GROUP, members=[MemberIdentity("", "till-7"), MemberIdentity("stranger")])
    answer = await broker.call(request, LeaveGroupResponse, version)
    assert answer.error_code == 0
    assert [(member.group_instance_id, member.error_code) for member in answer.members] == [
        ("till-7", 0),
        (None, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
