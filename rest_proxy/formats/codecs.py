"""All formats by one login at the schema registry: what is cached was found with the rights of that login."""

from types import MappingProxyType

from rest_proxy.formats import rules
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.formats.registry_calls import registry_threads
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings


class Codecs:
    """Encoders and decoders of all formats, with one client of the registry."""

    def __init__(self, settings: RegistryClientSettings) -> None:
        self._registry = RegistryClient(settings)
        self._threads = registry_threads()
        self.v2 = Encoders(self._registry, rules.V2, threads=self._threads)
        """Encoders by the rules of API v2."""
        self.v3 = Encoders(self._registry, rules.V3, threads=self._threads)
        """Encoders by the rules of API v3."""
        self.decoders = MappingProxyType(
            {format_: Decoder(format_, self._registry, threads=self._threads) for format_ in Format}
        )

    def close(self) -> None:
        """End threads and connections; calls that go on may fail."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._registry.close()
