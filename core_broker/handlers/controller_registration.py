"""ControllerRegistration, key 70, version 0: a controller says where it listens and what it supports (KIP-919).

Supported: everything. Every controller registers, whether it is active, a voter or an observer.
Ignored: `zk_migration_ready`, as in Kafka 4.
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


async def handle(request: ControllerRegistrationRequest, context: RequestContext) -> ControllerRegistrationResponse:
    """Register the controller."""
    await context.services.controller.register_controller(request)
    return ControllerRegistrationResponse(error_message=None)
