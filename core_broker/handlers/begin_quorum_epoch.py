"""BeginQuorumEpoch, key 53, versions 0-1: a new leader of the metadata quorum introduces itself (KIP-595).

Supported: directory ids and endpoints of the leader (1, KIP-853).
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


async def handle(request: BeginQuorumEpochRequest, context: RequestContext) -> BeginQuorumEpochResponse:
    """Follow the leader."""
    response = await context.services.metadata.on_request(request, context.listener_name)
    assert isinstance(response, BeginQuorumEpochResponse)
    return response
