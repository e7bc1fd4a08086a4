"""BrokerRegistration, key 62, versions 0-4: announces a broker to the controller (KIP-500, KIP-631).

Supported: everything. A broker that registers again is fenced until it has caught up; after an unclean stop it is no
eligible leader any more (KIP-966). The same incarnation may register again to change its details.
Ignored: nothing; brokers that migrate from ZooKeeper are rejected.

Versions: 1 is_migrating_zk_broker; 2 log directories (KIP-858); 3 previous broker epoch (KIP-966); 4 features may begin
at level 0 (KIP-1022).
"""

from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


async def handle(request: BrokerRegistrationRequest, context: RequestContext) -> BrokerRegistrationResponse:
    """Register the broker."""
    return BrokerRegistrationResponse(broker_epoch=await context.services.controller.register_broker(request))
