"""Where clients are told to connect: the listeners of this broker as it advertises them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core_broker.cluster.metadata import EndpointImage
from core_broker.protocol.stored.metadata import BrokerEndpoint
from core_broker.settings import BrokerSettings, Listener

_EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})
_SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedEndpoints:
    """The endpoints a broker registers with, one for each of its client listeners."""

    endpoints: tuple[EndpointImage, ...]

    @classmethod
    def of(cls, bound: Iterable[Listener], settings: BrokerSettings) -> "AdvertisedEndpoints":
        """The endpoints of listeners that are bound by now: `bound` holds the real ports where 0 was asked for.

        `advertised.listeners` goes first; there too a port of 0 means the one that was bound.
        """
        advertised = {listener.name: listener for listener in settings.advertised_listeners or ()}
        return cls(endpoints=tuple(_endpoint(listener, advertised, settings) for listener in bound))

    def records(self) -> list[BrokerEndpoint]:
        """The endpoints as a RegisterBrokerRecord carries them."""
        return [
            BrokerEndpoint(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in self.endpoints
        ]


def host_for_client(endpoint: EndpointImage, local_host: str) -> str:
    """The host to tell a client: where the endpoint stands for every address, the one by which the client came."""
    return local_host if endpoint.host in _EVERY_ADDRESS else endpoint.host


def _endpoint(bound: Listener, advertised: Mapping[str, Listener], settings: BrokerSettings) -> EndpointImage:
    told = advertised.get(bound.name, bound)
    protocol = settings.security_protocol(bound.name) or "PLAINTEXT"
    return EndpointImage(bound.name, told.host, told.port or bound.port, _SECURITY_PROTOCOLS[protocol])
