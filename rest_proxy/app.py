"""Composition root: wires the clients of the cluster and the registry, the routes and the HTTP server together."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import uvloop
from fastapi import APIRouter

from core_broker.client.errors import ClientError
from core_broker.client.oauth import is_this_machine
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
from core_broker.web_access.settings import CERTIFICATE
from rest_proxy.callers.clients import Clients, Shared
from rest_proxy.callers.pool import ClientPool
from rest_proxy.consume.instances.instances import Instances
from rest_proxy.consume.readers import ReaderPool
from rest_proxy.consume.streams import Streams
from rest_proxy.errors import ProxyError
from rest_proxy.formats.codecs import Codecs
from rest_proxy.identity import Identity
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.async_producer import InFlight
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
    lifecycle.allow_many_files()  # each caller has connections of its own
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
    own: Clients
    """Those of the proxy itself."""
    clients: ClientPool
    record_streams: RecordStreams
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
    _warn(settings)
    codecs = Codecs(settings.registry())
    stack.callback(codecs.close)
    readers = await stack.enter_async_context(ReaderPool(settings))
    streams = Streams(readers, limit=settings.streams_max, heartbeat_ms=settings.stream_heartbeat_ms)
    instances = Instances(settings, reachability=reachability)
    shared = Shared(
        settings=settings,
        metrics=metrics,
        reachability=reachability,
        codecs=codecs,
        in_flight=InFlight(),
        readers=readers,
        streams=streams,
        instances=instances,
    )
    own = Clients(Identity(settings), shared)
    stack.push_async_callback(own.close)
    if settings.methods:
        own.producers.check_settings()
    else:
        own.producers.warm_up()
    await stack.enter_async_context(instances.running())
    clients = ClientPool(own, shared)
    stack.push_async_callback(clients.close)
    parts = Parts(
        metrics=metrics,
        reachability=reachability,
        own=own,
        clients=clients,
        record_streams=RecordStreams(settings.requests_max_bytes),
        reading=Reading(settings, streams=streams, metrics=metrics, clients=own),
        streams=streams,
        instances=instances,
    )
    _add_gauges(parts, shared)
    return parts


def _warn(settings: ProxySettings) -> None:
    """Say what an operator should know about the logins of callers."""
    if CERTIFICATE in settings.methods:
        log.warning("callers with nothing but a certificate cannot use the cluster: it cannot be passed on")
    for url in settings.registry().urls if settings.schema_registry_as_caller else ():
        if url.startswith("http:") and not is_this_machine(urlsplit(url).hostname):
            log.warning("passwords and tokens of callers cross the network readable", extra={"registry": url})


def _add_gauges(parts: Parts, shared: Shared) -> None:
    """Let `/metrics` show what is open and in flight."""
    add, in_flight, readers = parts.metrics.add_gauge, shared.in_flight, shared.readers
    add("records_in_flight", "Records sent to the cluster, not acknowledged yet.", lambda: in_flight.records)
    add("bytes_in_flight", "Bytes sent to the cluster, not acknowledged yet.", lambda: in_flight.bytes)
    add("record_streams", "Produce streams that wait for more records.", lambda: parts.record_streams.waiting)
    add("streams", "Live streams that are being read.", lambda: parts.streams.count)
    add("readers", "Pages that are being read.", lambda: readers.in_use)
    add("readers_idle", "Readers kept for clients that ask for the next page.", lambda: readers.idle)
    add("consumer_instances", "Consumer instances that are open.", lambda: parts.instances.count)
    add("callers", "Callers for whom Kafka clients are kept.", lambda: parts.clients.count)


def _v2_routers(settings: ProxySettings, parts: Parts) -> list[APIRouter]:
    return [v2_produce.router(settings, parts.clients), v2_consumers.routes, v2_reads.routes, v2_topics.routes]


def _v3_routers(settings: ProxySettings, parts: Parts) -> list[APIRouter]:
    writing = produce.router(settings, clients=parts.clients, cluster=parts.own.cluster, streams=parts.record_streams)
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
    app.state.clients, app.state.reading = parts.clients, parts.reading
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
    lent = parts.clients.around(limited) if login.is_required else limited
    protected = with_login(lent, login, origins=settings.access_control_allow_origin)
    return counts.around(allow_origins(protected, settings))
