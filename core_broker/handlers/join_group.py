"""JoinGroup (11), versions 0-9.

A consumer joins a group of the classic protocol, or joins it again; the answer comes when the generation begins. Fully
supported: static members (KIP-345), member ids before the first join (KIP-394), the initial rebalance delay,
`group.max.size`.
Ignored: the reason (KIP-800).
Version notes: v1 rebalance time-out; v4 MEMBER_ID_REQUIRED; v5 instance id; v6 flexible; v7 protocol type and null
protocol name; v8 reason; v9 SkipAssignment (KIP-814).
"""

from typing import Final

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NULL_PROTOCOL_SINCE: Final = 7


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    """Answer one JoinGroup request."""
    try:
        response = await context.services.groups.classic.join(
            request,
            api_version=context.api_version,
            client_id=context.client_id or "",
            client_host=f"/{context.client_host}",
        )
    except BrokerError as error:
        response = JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    if response.error_code:
        response.protocol_name = None
    if response.protocol_name is None and context.api_version < _NULL_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response
