"""ConsumerGroupHeartbeat (68), versions 0-1.

The whole membership of a KIP-848 group in one request: join (epoch 0), keep alive, change the subscription, confirm
revocations, leave (-1), leave for a while as a static member (-2). Supported: server-side assignors uniform and range,
topic names and RE2 expressions, static members, full and incremental requests, joining a classic group of consumers
that is empty or running (`group.consumer.migration.policy`), and turning it back when only classic members are left.
Ignored: racks, which are stored and described but do not influence the assignment.
Version notes: v1 adds SubscribedTopicRegex (KIP-848) and asks for a member id that the client has made up (KIP-1082);
in v0 the coordinator makes one up.
"""

from core_broker.errors import BrokerError
from core_broker.groups.consumer_groups import serving
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


async def handle(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> ConsumerGroupHeartbeatResponse:
    """Answer one heartbeat, once what it changed is committed."""
    try:
        return await serving(context.services.groups.consumer_groups).heartbeat(
            request,
            version=context.api_version,
            client_id=context.client_id or "",
            client_host=f"/{context.client_host}",
        )
    except BrokerError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
