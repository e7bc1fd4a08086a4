"""Vote, key 52, versions 0-2: whether this node votes for a candidate (KIP-595).

Supported: votes in advance (2, KIP-996), directory ids (1, KIP-853).
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.vote import VoteRequest, VoteResponse


async def handle(request: VoteRequest, context: RequestContext) -> VoteResponse:
    """Answer a candidate."""
    response = await context.services.metadata.on_request(request, context.listener_name)
    assert isinstance(response, VoteResponse)
    return response
