"""ListGroups, key 16, versions 0-5.

The groups that this broker coordinates, of either protocol, filtered by state and type, ignoring case.

Versions: 3 flexible; 4 states (KIP-518); 5 types (KIP-848).
"""

from core_broker.errors import ErrorCode
from core_broker.groups.classic_member import State
from core_broker.handlers.access import may_use_groups
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """List the groups that match the filters."""
    groups = context.services.groups
    states = {state.lower() for state in request.states_filter}
    may_describe = may_use_groups(context)
    types = {kind.lower() for kind in request.types_filter}
    listed = [
        ListedGroup(group.group_id, group.protocol_type, group.state_name, group.kind)
        for shard in groups.loaded_shards()
        for group in shard.groups.values()
        if (not states or group.state_name.lower() in states)
        and (not types or group.kind in types)
        and group.state_name != State.DEAD
        and may_describe(group.group_id)
    ]
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if groups.is_loading else ErrorCode.NONE
    return ListGroupsResponse(error_code=error, groups=listed)
