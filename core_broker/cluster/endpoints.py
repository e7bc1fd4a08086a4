"""The advertised endpoints: where clients connect to this broker."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from core_broker.cluster.metadata import EndpointImage
from core_broker.protocol.stored.metadata import BrokerEndpoint
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
            endpoints.append(
                EndpointImage(listener.name, address.host, address.port or listener.port, _SECURITY_PROTOCOLS[protocol])
            )
        return cls(endpoints=tuple(endpoints))

    def records(self) -> list[BrokerEndpoint]:
        """The endpoints for a RegisterBrokerRecord."""
        return [
            BrokerEndpoint(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in self.endpoints
        ]


def host_for_client(endpoint: EndpointImage, local_host: str) -> str:
    """The host to advertise to a client; for a wildcard address, the one the client connected to."""
    return local_host if endpoint.host in _WILDCARDS else endpoint.host
