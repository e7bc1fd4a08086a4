"""ConsumerGroupDescribe, key 69, versions 0-1.

Members, subscriptions, epochs, current and target assignment of KIP-848 groups. For a classic group the result is
GROUP_ID_NOT_FOUND, after which admin clients use DescribeGroups. Partitions of deleted topics are left out. A group
with an assigned topic that the client may not describe is hidden.

Versions: 1 adds the type of a member (KIP-1099): 1 for the consumer protocol, 0 for a member that still uses the
classic one.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, may_use_groups, may_use_topics
from core_broker.handlers.authorized_operations import group_operations
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> ConsumerGroupDescribeResponse:
    """Describe each group."""
    may_describe = may_use_groups(context)
    groups = [
        DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for group_id in request.group_ids
        if not may_describe(group_id)
    ]
    groups += [_describe(group_id, context) for group_id in request.group_ids if may_describe(group_id)]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = group_operations(context, group.group_id)
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        group = context.services.groups.consumer_groups.describe(group_id)
        if not _shows_only(group, may_use_topics(context)):
            text = "The client may not describe all topics that are assigned to members of the group."
            raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)
        return group
    except BrokerError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)


def _shows_only(group: DescribedGroup, may_describe: Predicate) -> bool:
    """Whether the client may describe every topic in the assignments of a group."""
    return all(
        may_describe(topic.topic_name)
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )
