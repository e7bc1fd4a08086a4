"""JoinGroup, key 11, versions 0-9.

A consumer joins or rejoins a group of the classic protocol; the response is sent when the generation begins.
Supported: static members (KIP-345), member ids before the first join (KIP-394), the initial rebalance delay,
`group.max.size`.
Ignored: the reason (KIP-800).

Versions: 1 rebalance time-out; 4 MEMBER_ID_REQUIRED; 5 instance id; 6 flexible; 7 protocol type and null protocol name;
8 reason; 9 SkipAssignment (KIP-814).
"""

from typing import Final

from core_broker.errors import BrokerError
from core_broker.handlers.access import may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NULL_PROTOCOL_SINCE: Final = 7


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    """Join the group; responds when the generation begins."""
    try:
        response = await context.services.groups.classic.join(
            request,
            api_version=context.api_version,
            client_id=context.client_id or "",
            client_host=f"/{context.client_host}",
            may_describe=may_use_topics(context),
        )
    except BrokerError as error:
        response = JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    if response.error_code:
        response.protocol_name = None
    if response.protocol_name is None and context.api_version < _NULL_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response
