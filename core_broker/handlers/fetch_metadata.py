"""Fetch, key 1, versions 13-18: records of `__cluster_metadata`, on controller listeners.

Supported: long polling, diverging logs and snapshots; the fetch offset acknowledges what is before it (KIP-595).
Ignored: nothing.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.fetch import FetchRequest, FetchResponse


async def handle(request: FetchRequest, context: RequestContext) -> FetchResponse:
    """Read the metadata log."""
    response = await context.services.metadata.on_request(request, context.listener_name)
    assert isinstance(response, FetchResponse)
    return response
