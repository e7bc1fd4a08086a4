"""DescribeGroups, key 15, versions 0-6.

Classic groups with their members. Subscriptions and assignments are shown for a stable group only, since they have no
meaning during a rebalance. A group that does not exist, or is a KIP-848 group, is shown as Dead.

Versions: 3 authorized operations (KIP-430); 4 instance id; 5 flexible; 6 GROUP_ID_NOT_FOUND with a message instead of
Dead without an error (KIP-1043).
"""

from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.classic_group import ClassicGroup
from core_broker.groups.classic_member import State
from core_broker.handlers.access import may_use_groups
from core_broker.handlers.authorized_operations import NOT_ASKED, group_operations
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import describe_groups as wire

_NOT_FOUND_SINCE: Final = 6


def handle(request: wire.DescribeGroupsRequest, context: RequestContext) -> wire.DescribeGroupsResponse:
    """Describe each group."""
    may_describe = may_use_groups(context)
    described = [
        wire.DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
        for group_id in request.groups
        if not may_describe(group_id)
    ]
    described += [_describe(group_id, context) for group_id in request.groups if may_describe(group_id)]
    if request.include_authorized_operations:
        for group in described:
            group.authorized_operations = NOT_ASKED if group.error_code else group_operations(context, group.group_id)
    return wire.DescribeGroupsResponse(groups=described)


def _describe(group_id: str, context: RequestContext) -> wire.DescribedGroup:
    try:
        group = context.services.groups.find_group(group_id)
    except BrokerError as error:
        return wire.DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id)
    if not isinstance(group, ClassicGroup):
        return _dead(group_id, context.api_version, exists=group is not None)
    is_stable = group.state is State.STABLE
    name = group.protocol_name if is_stable else None
    return wire.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=name or "",
        members=[
            wire.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(name) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
    )


def _dead(group_id: str, api_version: int, *, exists: bool) -> wire.DescribedGroup:
    if api_version < _NOT_FOUND_SINCE:
        return wire.DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    message = f"Group {group_id} is not a classic group." if exists else f"Group {group_id} not found."
    return wire.DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=message,
        group_id=group_id,
        group_state=State.DEAD.value,
    )
