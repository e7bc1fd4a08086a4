"""Heartbeat, key 12, versions 0-4.

Keeps a member of a classic group alive; REBALANCE_IN_PROGRESS makes it rejoin.

Versions: 3 instance id (KIP-345); 4 flexible.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Process one heartbeat."""
    try:
        code = context.services.groups.classic.heartbeat(
            request.group_id, request.member_id, request.generation_id, request.group_instance_id
        )
    except BrokerError as error:
        # While the group is loaded no session can expire: as in Kafka, its members need not know.
        code = ErrorCode.NONE if error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code
    return HeartbeatResponse(0, code)
