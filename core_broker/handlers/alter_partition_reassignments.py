"""AlterPartitionReassignments, key 45, versions 0-1: moves replicas between brokers (KIP-455).

Supported: starting, replacing and (null) cancelling the reassignment of a partition.
Ignored: the time-out.

Versions: 1 allow_replication_factor_change (KIP-860).
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Reassign each partition."""
    return await context.services.controller.reassign(request)
