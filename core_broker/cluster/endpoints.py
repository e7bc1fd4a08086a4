"""The advertised endpoints: where clients connect to this broker."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from core_broker.cluster.metadata import EndpointImage, MetadataImage
from core_broker.raft.voters import Endpoint
from core_broker.settings import BrokerSettings, Listener

_WILDCARDS: Final = frozenset({"", "0.0.0.0", "::"})
_SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedEndpoints:
    """The endpoints a broker registers with, one for each of its client listeners."""

    endpoints: tuple[EndpointImage, ...]

    @classmethod
    def of(cls, bound: Iterable[Listener], settings: BrokerSettings) -> "AdvertisedEndpoints":
        """The endpoints of bound listeners; `bound` has the actual ports where 0 was configured.

        `advertised.listeners` takes precedence; there, too, a port of 0 means the one that was bound.
        """
        advertised = {listener.name: listener for listener in settings.advertised_listeners or ()}
        endpoints = []
        for listener in bound:
            address = advertised.get(listener.name, listener)
            protocol = settings.security_protocol(listener.name) or "PLAINTEXT"
            host = socket.gethostname() if address.host in _WILDCARDS else address.host
            endpoints.append(
                EndpointImage(listener.name, host, address.port or listener.port, _SECURITY_PROTOCOLS[protocol])
            )
        return cls(endpoints=tuple(endpoints))

    def by_name(self) -> list[tuple[str, Endpoint]]:
        """The endpoints of controller listeners, for the voters of the quorum."""
        return [(endpoint.listener, Endpoint(endpoint.host, endpoint.port)) for endpoint in self.endpoints]


def host_for_client(endpoint: EndpointImage, image: MetadataImage, settings: BrokerSettings, local_host: str) -> str:
    """The host of a broker for a client of this one.

    A broker that listens on every address and advertises none registers the name of its machine, for other brokers.
    Clients of a single broker may not know that name, so they get the address that they connected to. In a cluster they
    must get the same name from every broker.
    """
    if set(image.brokers) != {settings.node_id} or settings.advertised_listeners is not None:
        return endpoint.host
    own = {listener.name: listener.host for listener in settings.listeners}
    return local_host if own.get(endpoint.listener) in _WILDCARDS else endpoint.host
