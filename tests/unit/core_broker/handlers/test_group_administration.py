"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete."""

import asyncio

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from core_broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from core_broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from core_broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from core_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.support.classic_group_world import RANGE
from tests.support.group_handler_world import GROUP, GroupHandlers


@pytest.mark.parametrize("version", range(6))
async def test_groups_are_listed_in_every_version(broker: GroupHandlers, version: int) -> None:
    await broker.stable_member()
    answer = await broker.call(ListGroupsRequest(), ListGroupsResponse, version)
    assert answer.error_code == 0
    (group,) = answer.groups
    assert (group.group_id, group.protocol_type) == (GROUP, "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize(
    "states,types,is_listed",
    [(["stable"], [], True), (["Empty"], [], False), ([], ["Classic"], True), ([], ["consumer"], False)],
)
async def test_groups_are_filtered_without_regard_to_case(
    broker: GroupHandlers, states: list[str], types: list[str], is_listed: bool
) -> None:
    await broker.stable_member()
    answer = await broker.call(ListGroupsRequest(states, types), ListGroupsResponse, 5)
    assert bool(answer.groups) is is_listed


@pytest.mark.parametrize("version", range(7))
async def test_stable_group_is_described_with_its_members(broker: GroupHandlers, version: int) -> None:
    member_id = await broker.stable_member()
    answer = await broker.call(DescribeGroupsRequest([GROUP]), DescribeGroupsResponse, version)
    (group,) = answer.groups
    assert (group.error_code, group.group_state, group.protocol_data) == (0, "Stable", "range")
    (member,) = group.members
    assert (member.member_id, member.member_assignment) == (member_id, b"all")
    assert member.member_metadata == RANGE[0][1]
    assert member.client_host == "/192.0.2.9"


async def test_group_in_a_rebalance_is_described_without_what_is_changing(broker: GroupHandlers) -> None:
    await broker.stable_member()
    waiting = asyncio.ensure_future(broker.join(version=3))
    await asyncio.sleep(0)
    answer = await broker.call(DescribeGroupsRequest([GROUP]), DescribeGroupsResponse, 5)
    group = answer.groups[0]
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [(member.member_metadata, member.member_assignment) for member in group.members] == [(b"", b"")] * 2
    waiting.cancel()


async def test_unknown_group_is_dead_without_an_error_before_version_six(broker: GroupHandlers) -> None:
    old = await broker.call(DescribeGroupsRequest(["nobody"]), DescribeGroupsResponse, 5)
    assert (old.groups[0].error_code, old.groups[0].group_state) == (0, "Dead")
    new = await broker.call(DescribeGroupsRequest(["nobody"]), DescribeGroupsResponse, 6)
    assert new.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert new.groups[0].error_message == "Group nobody not found."


async def test_authorized_operations_are_told_when_asked_for(broker: GroupHandlers) -> None:
    await broker.stable_member()
    plain = await broker.call(DescribeGroupsRequest([GROUP]), DescribeGroupsResponse, 5)
    assert plain.groups[0].authorized_operations == -(2**31)
    asked = await broker.call(DescribeGroupsRequest([GROUP], True), DescribeGroupsResponse, 5)
    assert asked.groups[0].authorized_operations == (1 << 3) | (1 << 6) | (1 << 8) | (1 << 10) | (1 << 11)


@pytest.mark.parametrize("version", range(3))
async def test_only_empty_groups_are_deleted(broker: GroupHandlers, version: int) -> None:
    member_id = await broker.stable_member()
    request = DeleteGroupsRequest([GROUP, "nobody"])
    answer = await broker.call(request, DeleteGroupsResponse, version)
    assert [(result.group_id, result.error_code) for result in answer.results] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    await broker.call(LeaveGroupRequest(GROUP, member_id), LeaveGroupResponse, 1)
    answer = await broker.call(request, DeleteGroupsResponse, version)
    assert answer.results[0].error_code == 0
    listed = await broker.call(ListGroupsRequest(), ListGroupsResponse, 4)
    assert listed.groups == []


async def test_offsets_are_deleted_one_by_one(broker: GroupHandlers) -> None:
    await broker.commit(("orders", 0, 5), ("orders", 1, 6))
    topics = [
        OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)]),
        OffsetDeleteRequestTopic("nowhere", [OffsetDeleteRequestPartition(0)]),
    ]
    answer = await broker.call(OffsetDeleteRequest(GROUP, topics), OffsetDeleteResponse, 0)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await broker.fetch("orders", 0, 1) == [(-1, 0), (6, 0)]


async def test_offsets_of_an_unknown_group_are_not_deleted(broker: GroupHandlers) -> None:
    answer = await broker.call(OffsetDeleteRequest("nobody"), OffsetDeleteResponse, 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
