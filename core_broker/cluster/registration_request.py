"""The request with which a broker registers itself at the controller."""

from collections.abc import Sequence

from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.features import offered_features
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from core_broker.settings import BrokerSettings


def registration_request(
    settings: BrokerSettings,
    endpoints: AdvertisedEndpoints,
    *,
    cluster_id: str,
    incarnation_id: bytes,
    log_dirs: Sequence[bytes],
    previous_epoch: int = -1,
) -> BrokerRegistrationRequest:
    """`previous_epoch` is that of the incarnation before, only if it stopped cleanly with all logs on disk."""
    return BrokerRegistrationRequest(
        broker_id=settings.node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[Listener(e.listener, e.host, e.port, e.security_protocol) for e in endpoints.endpoints],
        features=[Feature(name, low, high) for name, (low, high) in offered_features().items()],
        rack=settings.broker_rack,
        log_dirs=sorted(log_dirs),
        previous_broker_epoch=previous_epoch,
    )
