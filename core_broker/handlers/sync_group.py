"""SyncGroup (14), versions 0-5.

Members of a classic group fetch their assignment; the leader brings everybody's. Answers come when it is stored.
Version notes: v3 instance id (KIP-345); v4 flexible; v5 protocol type and name must be those of the group (KIP-559).
"""

from typing import Final

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_SINCE: Final = 5


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    """Answer one SyncGroup request."""
    if context.api_version >= _PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return await context.services.groups.classic.sync(request)
    except BrokerError as error:
        return SyncGroupResponse(error_code=error.code)
