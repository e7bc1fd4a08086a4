"""Composition: clients of the cluster and of the registry, routes and the HTTP server become one running proxy."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop
from fastapi import APIRouter

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.client.reachability import Reachability
from core_broker.service import lifecycle
from core_broker.service.metrics import Family
from core_broker.service.web.app import create_app
from core_broker.service.web.asgi import Application
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.limits import BodyLimits
from core_broker.service.web.paths import RawPaths
from core_broker.service.web.server import endpoints, serving
from rest_proxy.admin.cluster import KafkaCluster, watching
from rest_proxy.consume.instances.instances import Instances
from rest_proxy.consume.readers import Readers
from rest_proxy.consume.streams import Streams
from rest_proxy.errors import ProxyError
from rest_proxy.formats import rules
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import Producers
from rest_proxy.produce.v3.records import RecordSender
from rest_proxy.produce.v3.stream import RecordStreams
from rest_proxy.routes import document
from rest_proxy.routes.backlog import Backlog
from rest_proxy.routes.bytes_routes import Shortcut
from rest_proxy.routes.cross_origin import shared
from rest_proxy.routes.media_types import MediaTypes
from rest_proxy.routes.reading import Reading
from rest_proxy.routes.v2 import consumers as v2_consumers
from rest_proxy.routes.v2 import produce as v2_produce
from rest_proxy.routes.v2 import records as v2_records
from rest_proxy.routes.v2 import topics as v2_topics
from rest_proxy.routes.v3 import acls, brokers, clusters, configs, groups, partitions, reads, records, topics
from rest_proxy.settings import ProxySettings
from schema_registry.client.registry_client import RegistryClient

log = logging.getLogger(__name__)

_DESCRIPTION = """Produce, consume and administer a Kafka cluster over HTTP: the APIs v2 and v3 of Confluent's REST
proxy, and more.

API v2 writes records, reads them through consumer instances, and shows topics. API v3 administers the cluster below
`/v3/clusters/{cluster_id}`, and writes records one by one, as streams and in batches. Both read records without an
instance, as pages or as live streams (NDJSON and server-sent events).

Every failure is told as `{"error_code": 40401, "message": "Topic orders not found."}`: the first three digits of the
code are the HTTP status. Names in paths are percent-encoded. `Retry-After` says when a request may be tried again.
"""


def run(settings: ProxySettings) -> int:
    """Run a proxy until it is told to stop; the exit code is the process's."""
    try:
        return lifecycle.run(running(settings), name="rest-proxy", loop_factory=uvloop.new_event_loop)
    except (ClientError, ProxyError, OSError, ValueError) as error:
        log.critical("REST proxy cannot start", extra={"reason": str(error)})
    return 1


@asynccontextmanager
async def running(settings: ProxySettings) -> AsyncIterator[Mapping[str, str]]:
    """A proxy for as long as the block lasts; gives its endpoints."""
    async with AsyncExitStack() as stack:
        parts = await _start(settings, stack)
        routers = [*_v2(settings, parts), *_v3(settings, parts)]
        async with serving(application(routers, settings, parts.metrics, parts.is_healthy), settings) as urls:
            try:
                yield {**endpoints(urls), "state": _state_folder(settings)}
            finally:
                parts.tell_end()  # while there are still connections to tell it to


def _state_folder(settings: ProxySettings) -> str:
    """Where consumer instances are kept, for the ready line."""
    return str(Path(settings.state_dir).absolute()) if settings.state_dir else "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the routes of both APIs work with."""

    metrics: ProxyMetrics
    reachability: Reachability
    registry: RegistryClient
    producers: Producers
    record_streams: RecordStreams
    cluster: KafkaCluster
    reading: Reading
    streams: Streams
    instances: Instances

    def is_healthy(self) -> bool:
        """Whether the cluster answers, without which there is nothing to do."""
        try:
            self.reachability.check()
        except ClientError:
            return False
        return True

    def tell_end(self) -> None:
        """Let those who wait or stream know that the proxy stops."""
        self.instances.stop()
        self.record_streams.stop()
        self.streams.stop()


async def _start(settings: ProxySettings, stack: AsyncExitStack) -> Parts:
    """Make every part; what must be closed enters the stack."""
    metrics = ProxyMetrics()
    for_admin = settings.kafka(settings.admin_properties)
    reachability = Reachability(for_admin)
    registry = stack.enter_context(RegistryClient(settings.registry()))
    producers = Producers(settings, reachability)
    stack.push_async_callback(producers.close)
    producers.warm_up()
    decoders = {format_: Decoder(format_, registry) for format_ in Format}
    readers = await stack.enter_async_context(Readers(settings, reachability))
    streams = Streams(readers, limit=settings.streams_max, heartbeat_ms=settings.stream_heartbeat_ms)
    instances = Instances(settings, reachability=reachability, decoders=decoders, metrics=metrics)
    await stack.enter_async_context(instances.running())
    parts = Parts(
        metrics=metrics,
        reachability=reachability,
        registry=registry,
        producers=producers,
        record_streams=RecordStreams(settings.requests_max_bytes),
        cluster=KafkaCluster(Admin(for_admin, watch=watching(reachability)), reachability, address=settings.address),
        reading=Reading(settings, readers=readers, streams=streams, decoders=decoders, metrics=metrics),
        streams=streams,
        instances=instances,
    )
    _watch(parts, readers)
    return parts


def _watch(parts: Parts, readers: Readers) -> None:
    """Let `/metrics` tell what is open and in flight."""
    watch, producers = parts.metrics.watch, parts.producers
    watch("records_in_flight", "Records on their way to the cluster.", lambda: producers.records_in_flight)
    watch("bytes_in_flight", "Bytes on their way to the cluster.", lambda: producers.bytes_in_flight)
    watch("record_streams", "Streams that wait for more records to write.", lambda: parts.record_streams.waiting)
    watch("streams", "Live streams that are read.", lambda: parts.streams.count)
    watch("readers", "Pages that are read.", lambda: readers.in_use)
    watch("readers_idle", "Readers kept for who reads on where they stopped.", lambda: readers.idle)
    watch("consumer_instances", "Consumer instances that are open.", lambda: parts.instances.count)


def _v2(settings: ProxySettings, parts: Parts) -> Iterable[APIRouter]:
    if settings.api_v2_enable:
        encoders = Encoders(parts.registry, rules.V2)
        yield v2_produce.router(settings, producers=parts.producers, encoders=encoders, metrics=parts.metrics)
        yield v2_consumers.router(settings, instances=parts.instances)
        yield v2_records.router(parts.reading)
        yield v2_topics.router(parts.cluster)


def _v3(settings: ProxySettings, parts: Parts) -> Iterable[APIRouter]:
    if settings.api_v3_enable:
        sender = RecordSender(parts.producers, Encoders(parts.registry, rules.V3), parts.metrics)
        yield records.router(settings, sender=sender, cluster=parts.cluster, streams=parts.record_streams)
        yield reads.router(parts.reading, parts.cluster, settings.advertised_listeners)
        for administered in (clusters, brokers, topics, partitions, configs, groups, acls):
            yield administered.router(parts.cluster, settings.advertised_listeners)


def application(
    routers: Sequence[APIRouter],
    settings: ProxySettings,
    metrics: ProxyMetrics,
    is_healthy: Callable[[], bool] = lambda: True,
) -> Application:
    """The whole HTTP application; to be made inside the event loop that serves it."""
    counts = RequestCounts("caudal_rest_proxy")

    def collect() -> Iterable[Family]:
        yield from metrics.families()
        yield from counts.families()

    app = create_app(
        title="Caudal REST proxy",
        description=_DESCRIPTION,
        error_type=ProxyError,
        collect=collect,
        is_healthy=is_healthy,
    )
    for router in routers:
        app.include_router(router)
    document.describe(app)
    unbounded = partial(records.is_stream, max_bytes=settings.request_max_bytes)
    backlog = Backlog(MediaTypes(Shortcut(app, routers)), settings.consumer_untaken_max_bytes)
    metrics.watch("untaken_bytes", "Of large answers that clients have not taken yet.", lambda: backlog.bytes)
    paths = RawPaths(backlog, merges_slashes=True)
    limited = BodyLimits(paths, settings, is_unbounded=unbounded)
    return counts.around(shared(limited, settings))
