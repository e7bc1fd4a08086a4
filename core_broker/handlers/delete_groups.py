"""DeleteGroups, key 42, versions 0-2.

Deletes empty groups of either kind with their offsets.

Versions: 2 flexible.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, may_use_groups
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Delete each group."""
    may_delete = may_use_groups(context)
    results = [await _delete(group_id, context, may_delete) for group_id in dict.fromkeys(request.groups_names)]
    return DeleteGroupsResponse(results=results)


async def _delete(group_id: str, context: RequestContext, may_delete: Predicate) -> DeletableGroupResult:
    if not may_delete(group_id):
        return DeletableGroupResult(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        await context.services.groups.delete_group(group_id)
    except BrokerError as error:
        return DeletableGroupResult(group_id, error.code)
    return DeletableGroupResult(group_id, ErrorCode.NONE)
