"""UnregisterBroker, key 64, version 0: removes a broker that will not return from the metadata.

Supported: every broker but the one that runs on this node. Others lead its partitions as far as they can.
Ignored: nothing.
"""

from core_broker.errors import BrokerError
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
    """Unregister the broker."""
    try:
        await context.services.controller.unregister_broker(request.broker_id)
    except BrokerError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse(error_message=None)
