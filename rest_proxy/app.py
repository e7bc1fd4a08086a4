"""Composition root: wires the clients of the cluster and the registry, the routes and the HTTP server together."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
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
from core_broker.web_access.documented import add_access
from core_broker.web_access.login import Login, login_of
from core_broker.web_access.middleware import with_login
from rest_proxy.admin.cluster import KafkaCluster, fail_if_unreachable
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
from rest_proxy.produce.v2.sender import V2RecordSender
from rest_proxy.produce.v3.sender import V3RecordSender
from rest_proxy.produce.v3.stream import RecordStreams
from rest_proxy.routes import document
from rest_proxy.routes.backlog import Backlog
from rest_proxy.routes.bytes_routes import Shortcut
from rest_proxy.routes.cross_origin import allow_origins
from rest_proxy.routes.media_types import MediaTypes
from rest_proxy.routes.reading import Reading
from rest_proxy.routes.v2 import consumers as v2_consumers
from rest_proxy.routes.v2 import produce as v2_produce
from rest_proxy.routes.v2 import reads as v2_reads
from rest_proxy.routes.v2 import topics as v2_topics
from rest_proxy.routes.v3 import acls, brokers, clusters, configs, groups, partitions, produce, reads, topics
from rest_proxy.settings import ProxySettings
from schema_registry.client.registry_client import RegistryClient

log = logging.getLogger(__name__)

_DESCRIPTION = """Produce, consume and administer a Kafka cluster over HTTP: the APIs v2 and v3 of Confluent's REST
proxy, and more.

API v2 writes records, reads them through consumer instances, and shows topics. API v3 administers the cluster below
`/v3/clusters/{cluster_id}`, and writes records one by one, as streams and in batches. Both read records without an
instance, as pages or as live streams (NDJSON and server-sent events).

Every error has the body `{"error_code": 40401, "message": "Topic orders not found."}`: the first three digits of the
code are the HTTP status. Names in paths are percent-encoded. `Retry-After` says when a request may be retried.
"""


def run(settings: ProxySettings) -> int:
    """Run a proxy until it is stopped; returns the exit code of the process."""
    try:
        return lifecycle.run(running(settings), name="rest-proxy", loop_factory=uvloop.new_event_loop)
    except (ClientError, ProxyError, OSError, ValueError) as error:
        log.critical("REST proxy cannot start", extra={"reason": str(error)})
    return 1


@asynccontextmanager
async def running(settings: ProxySettings) -> AsyncIterator[Mapping[str, str]]:
    """Run a proxy while the block runs; yields its endpoints."""
    async with AsyncExitStack() as stack:
        parts = await _start(settings, stack)
        login = await stack.enter_async_context(login_of(settings).running())
        async with serving(_application(settings, parts, login), settings) as urls:
            try:
                yield {**endpoints(urls), "state": _state_folder(settings)}
            finally:
                parts.stop()  # before the server closes the connections, so that their last message still gets out


def _state_folder(settings: ProxySettings) -> str:
    """Where consumer instances are kept, for the ready line."""
    return str(Path(settings.state_dir).absolute()) if settings.state_dir else "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The services that the routes of both APIs use."""

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
        """Whether the cluster answers; without it the proxy can do nothing."""
        try:
            self.reachability.check()
        except ClientError:
            return False
        return True

    def stop(self) -> None:
        """End the polls and streams of clients with a message that the proxy stops."""
        self.instances.stop()
        self.record_streams.stop()
        self.streams.stop()


async def _start(settings: ProxySettings, stack: AsyncExitStack) -> Parts:
    """Create the parts; those that must be closed enter the stack."""
    metrics = ProxyMetrics()
    admin_settings = settings.kafka(settings.admin_properties)
    reachability = Reachability(admin_settings)
    registry = stack.enter_context(RegistryClient(settings.registry()))
    producers = Producers(settings, reachability)
    stack.push_async_callback(producers.close)
    producers.warm_up()
    decoders = {format_: Decoder(format_, registry) for format_ in Format}
    readers = await stack.enter_async_context(Readers(settings, reachability))
    streams = Streams(readers, limit=settings.streams_max, heartbeat_ms=settings.stream_heartbeat_ms)
    instances = Instances(settings, reachability=reachability, decoders=decoders, metrics=metrics)
    await stack.enter_async_context(instances.running())
    admin = Admin(admin_settings, watch=fail_if_unreachable(reachability))
    parts = Parts(
        metrics=metrics,
        reachability=reachability,
        registry=registry,
        producers=producers,
        record_streams=RecordStreams(settings.requests_max_bytes),
        cluster=KafkaCluster(admin, reachability, address=settings.address),
        reading=Reading(settings, readers=readers, streams=streams, decoders=decoders, metrics=metrics),
        streams=streams,
        instances=instances,
    )
    _add_gauges(parts, readers)
    return parts


def _add_gauges(parts: Parts, readers: Readers) -> None:
    """Let `/metrics` show what is open and in flight."""
    add, producers = parts.metrics.add_gauge, parts.producers
    add("records_in_flight", "Records sent to the cluster, not acknowledged yet.", lambda: producers.records_in_flight)
    add("bytes_in_flight", "Bytes sent to the cluster, not acknowledged yet.", lambda: producers.bytes_in_flight)
    add("record_streams", "Produce streams that wait for more records.", lambda: parts.record_streams.waiting)
    add("streams", "Live streams that are being read.", lambda: parts.streams.count)
    add("readers", "Pages that are being read.", lambda: readers.in_use)
    add("readers_idle", "Readers kept for clients that ask for the next page.", lambda: readers.idle)
    add("consumer_instances", "Consumer instances that are open.", lambda: parts.instances.count)


def _v2_routers(settings: ProxySettings, parts: Parts) -> list[APIRouter]:
    sender = V2RecordSender(parts.producers, Encoders(parts.registry, rules.V2), parts.metrics)
    return [v2_produce.router(settings, sender), v2_consumers.routes, v2_reads.routes, v2_topics.routes]


def _v3_routers(settings: ProxySettings, parts: Parts) -> list[APIRouter]:
    sender = V3RecordSender(parts.producers, Encoders(parts.registry, rules.V3), parts.metrics)
    writing = produce.router(settings, sender=sender, cluster=parts.cluster, streams=parts.record_streams)
    resources = (reads, clusters, brokers, topics, partitions, configs, groups, acls)
    return [writing, *(resource.routes for resource in resources)]


def _application(settings: ProxySettings, parts: Parts, login: Login) -> Application:
    """The whole HTTP application; must be created inside the event loop that serves it."""
    metrics, counts = parts.metrics, RequestCounts("caudal_rest_proxy")

    def collect() -> Iterable[Family]:
        yield from metrics.families()
        yield from counts.families()
        yield from login.families()

    app = create_app(
        title="Caudal REST proxy",
        description=_DESCRIPTION,
        error_type=ProxyError,
        collect=collect,
        is_healthy=parts.is_healthy,
    )
    app.state.cluster, app.state.instances, app.state.reading = parts.cluster, parts.instances, parts.reading
    app.state.advertised = settings.advertised_listeners
    routers = [
        *(_v2_routers(settings, parts) if settings.api_v2_enable else ()),
        *(_v3_routers(settings, parts) if settings.api_v3_enable else ()),
    ]
    for router in routers:
        app.include_router(router)
    document.describe(app)
    add_access(app, settings)
    is_unbounded = partial(produce.is_stream, max_bytes=settings.request_max_bytes)
    backlog = Backlog(MediaTypes(Shortcut(app, routers)), settings.consumer_untaken_max_bytes)
    metrics.add_gauge("untaken_bytes", "Bytes of large responses not read by clients yet.", lambda: backlog.bytes)
    paths = RawPaths(backlog, merges_slashes=True)
    limited = BodyLimits(paths, settings, is_unbounded=is_unbounded)
    protected = with_login(limited, login, origins=settings.access_control_allow_origin)
    return counts.around(allow_origins(protected, settings))
