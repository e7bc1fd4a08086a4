"""SyncGroup, key 14, versions 0-5.

Members of a classic group get their assignments; the leader sends all of them. Responses are sent once it is stored.

Versions: 3 instance id (KIP-345); 4 flexible; 5 protocol type and name must match the group's (KIP-559).
"""

from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import check_group
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_SINCE: Final = 5


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    """Return the member's assignment once it is stored."""
    if context.api_version >= _PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        check_group(context, request.group_id)
        return await context.services.groups.classic.sync(request)
    except BrokerError as error:
        return SyncGroupResponse(error_code=error.code)
