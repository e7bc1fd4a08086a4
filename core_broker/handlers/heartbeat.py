"""Heartbeat (12), versions 0-4.

A member of a classic group is alive; REBALANCE_IN_PROGRESS tells it to join again.
Version notes: v3 instance id (KIP-345); v4 flexible.
"""

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Answer one Heartbeat request."""
    try:
        code = context.services.groups.classic.heartbeat(
            request.group_id, request.member_id, request.generation_id, request.group_instance_id
        )
    except BrokerError as error:
        code = error.code
    return HeartbeatResponse(0, code)
