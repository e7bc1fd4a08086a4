"""LeaveGroup, key 13, versions 0-5.

Members leave a classic group; an operator may remove static ones by their instance id alone.
Ignored: the reason (KIP-800).

Versions: 3 many members, and static ones (KIP-345); 4 flexible; 5 reason.
"""

from typing import Final

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

_BATCHED_SINCE: Final = 3


async def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Remove the members from the group."""
    is_batched = context.api_version >= _BATCHED_SINCE
    if is_batched:
        leaving = [(member.member_id, member.group_instance_id) for member in request.members]
    else:
        leaving = [(request.member_id, None)]
    try:
        errors = await context.services.groups.classic.leave(request.group_id, leaving)
    except BrokerError as error:
        return LeaveGroupResponse(error_code=error.code)
    if not is_batched:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id, instance_id, error)
            for (member_id, instance_id), error in zip(leaving, errors, strict=True)
        ]
    )
