"""FetchSnapshot, key 59, versions 0-1: some bytes of a snapshot of the metadata log (KIP-630).

Supported: directory ids, and the endpoint of the leader (1, KIP-853).
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


async def handle(request: FetchSnapshotRequest, context: RequestContext) -> FetchSnapshotResponse:
    """Read a part of a snapshot."""
    response = await context.services.metadata.on_request(request, context.listener_name)
    assert isinstance(response, FetchSnapshotResponse)
    return response
