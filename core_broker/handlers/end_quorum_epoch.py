"""EndQuorumEpoch, key 54, versions 0-1: the leader of the metadata quorum steps down (KIP-595).

Supported: preferred candidates with directory ids (1, KIP-853).
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


async def handle(request: EndQuorumEpochRequest, context: RequestContext) -> EndQuorumEpochResponse:
    """Look for the next leader, or become it."""
    response = await context.services.metadata.on_request(request, context.listener_name)
    assert isinstance(response, EndQuorumEpochResponse)
    return response
