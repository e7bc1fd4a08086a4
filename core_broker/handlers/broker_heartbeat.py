"""BrokerHeartbeat, key 63, versions 0-2: a broker tells the controller that it is alive, or wants to stop (KIP-631).

Supported: fencing, unfencing, controlled shutdown, failed log directories.
Ignored: cordoned log directories.

Versions: 1 failed log directories (KIP-858); 2 cordoned log directories (KIP-1066).
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def handle(request: BrokerHeartbeatRequest, context: RequestContext) -> BrokerHeartbeatResponse:
    """Note the heartbeat, and return the state of the broker."""
    return await context.services.controller.heartbeat(request)
