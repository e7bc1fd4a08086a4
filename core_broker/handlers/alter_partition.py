"""AlterPartition, key 56, versions 2-3: the leader of a partition changes its ISR (KIP-497, KIP-704).

Supported: everything; the change may complete a reassignment, and then another broker may lead (NEW_LEADER_ELECTED).
Ignored: nothing.

Versions: 3 epochs of the brokers, so that a broker cannot join with what it lost in a restart (KIP-903).
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    """Change each partition."""
    return await context.services.controller.alter_partition(request)
