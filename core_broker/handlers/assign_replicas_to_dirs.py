"""AssignReplicasToDirs, key 73, version 0: a broker reports in which log directory each replica is (KIP-858).

Supported: everything; a replica in a directory that the broker did not register counts as offline.
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


async def handle(request: AssignReplicasToDirsRequest, context: RequestContext) -> AssignReplicasToDirsResponse:
    """Note the directory of each replica."""
    return await context.services.controller.assign_replicas_to_dirs(request)
