"""All that talks to the cluster and the registry as one identity; each part is made when it is needed first."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from core_broker.client.admin import Admin
from core_broker.client.reachability import Reachability
from core_broker.service.clock import Clock, SystemClock
from rest_proxy.admin.cluster import KafkaCluster, fail_if_unreachable
from rest_proxy.consume.instances.instances import Instances
from rest_proxy.consume.instances.of_caller import CallerInstances
from rest_proxy.consume.readers import ReaderPool, Readers
from rest_proxy.consume.streams import Streams
from rest_proxy.formats.codecs import Codecs
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.formats import Format
from rest_proxy.identity import CallerIdentity, Identity
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.async_producer import InFlight
from rest_proxy.produce.producers import Producers
from rest_proxy.produce.v2.sender import V2RecordSender
from rest_proxy.produce.v3.sender import V3RecordSender
from rest_proxy.settings import ProxySettings

_WATCHED_SECONDS: Final = 1.0
"""How long a login counts while a call to the cluster waits: the library does not say that it was refused."""
_LAZY: Final = ("producers", "cluster", "readers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all identities share: the limits of this proxy, and parts that need no rights."""

    settings: ProxySettings
    metrics: ProxyMetrics
    reachability: Reachability
    codecs: Codecs
    """With the proxy's own login at the registry."""
    in_flight: InFlight
    readers: ReaderPool
    streams: Streams
    instances: Instances


class Clients:
    """The clients of one identity. For use in one event loop."""

    def __init__(
        self, identity: Identity, shared: Shared, *, own: "Clients | None" = None, clock: Clock | None = None
    ) -> None:
        """`own` are the clients of the proxy itself."""
        self.identity = identity
        self._shared = shared
        self._own = own
        self._clock = clock or SystemClock()
        self._codecs: Codecs | None = None
        self._codecs_until = 0.0

    @cached_property
    def producers(self) -> Producers:
        """Where records are sent to."""
        shared = self._shared
        return Producers(shared.settings, shared.reachability, identity=self.identity, in_flight=shared.in_flight)

    @cached_property
    def cluster(self) -> KafkaCluster:
        """The cluster, for its administration."""
        shared, identity = self._shared, self.identity
        is_unreachable = fail_if_unreachable(shared.reachability)

        def watch() -> None:
            is_unreachable()
            identity.check(fresh_seconds=_WATCHED_SECONDS)

        def make_admin() -> Admin:
            return Admin(identity.kafka(shared.settings.admin_properties), watch=watch)

        return KafkaCluster(
            make_admin,
            shared.reachability,
            address=shared.settings.address,
            check_login=identity.check,
            named_by=None if self._own is None else self._own.cluster,
        )

    @cached_property
    def readers(self) -> Readers:
        """Where pages and streams are read from."""
        shared = self._shared
        return Readers(shared.readers, shared.settings, shared.reachability, self.identity)

    @property
    def decoders(self) -> Mapping[Format, Decoder]:
        """Decoders of all formats."""
        return self._used_codecs().decoders

    @property
    def instances(self) -> CallerInstances:
        """The consumer instances of this identity."""
        shared = self._shared
        return CallerInstances(
            shared.instances, self.identity, shared.settings, decoders=self.decoders, metrics=shared.metrics
        )

    @property
    def v2_sender(self) -> V2RecordSender:
        """Sends the records of API v2."""
        return V2RecordSender(self.producers, self._used_codecs().v2, self._shared.metrics)

    @property
    def v3_sender(self) -> V3RecordSender:
        """Sends the records of API v3."""
        return V3RecordSender(self.producers, self._used_codecs().v3, self._shared.metrics)

    def _used_codecs(self) -> Codecs:
        identity = self.identity
        if not (isinstance(identity, CallerIdentity) and self._shared.settings.schema_registry_as_caller):
            return self._shared.codecs
        # The client of the registry keeps its token; those who still use the old one end with it.
        if self._codecs is None or self._codecs_until <= self._clock.now_ms():
            self._codecs, self._codecs_until = Codecs(identity.registry()), identity.expires_at_ms
        return self._codecs

    async def close(self) -> None:
        """Wait for the records in flight, and close all clients."""
        self._shared.readers.drop_all_of(self.identity)
        made = vars(self)
        if "producers" in made:
            await self.producers.close()
        await asyncio.to_thread(self._drop)

    def _drop(self) -> None:
        """Let the library end its threads, which takes a moment."""
        for name in _LAZY:
            vars(self).pop(name, None)
        if self._codecs is not None:
            self._codecs.close()
