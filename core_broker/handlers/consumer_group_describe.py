"""ConsumerGroupDescribe, key 69, versions 0-1.

Members, subscriptions, epochs, current and target assignment of KIP-848 groups. For a classic group the result is
GROUP_ID_NOT_FOUND, after which admin clients use DescribeGroups. Partitions of deleted topics are left out. All
operations of a group are authorized, since there is no authorizer yet.

Versions: 1 adds the type of a member (KIP-1099): 1 for the consumer protocol, 0 for a member that still uses the
classic one.
"""

from core_broker.errors import BrokerError
from core_broker.handlers.authorized_operations import GROUP_OPERATIONS
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> ConsumerGroupDescribeResponse:
    """Describe each group."""
    groups = [_describe(group_id, context) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        return context.services.groups.consumer_groups.describe(group_id)
    except BrokerError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)
