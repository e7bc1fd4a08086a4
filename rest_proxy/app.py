"""Composition: clients of the cluster and of the registry, routes and the HTTP server become one running proxy."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import uvloop
from fastapi import APIRouter

from core_broker.client.admin import Admin
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
from rest_proxy.consume.instances import Instances
from rest_proxy.consume.readers import Readers
from rest_proxy.consume.streams import Streams
from rest_proxy.errors import ProxyError
from rest_proxy.formats import rules
from rest_proxy.formats.decoding import Decoder
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import Producers
from rest_proxy.produce.v3_records import RecordSender
from rest_proxy.produce.v3_stream import RecordStreams
from rest_proxy.routes import (
    document,
    v2_consumers,
    v2_produce,
    v2_records,
    v2_topics,
    v3_acls,
    v3_brokers,
    v3_clusters,
    v3_configs,
    v3_groups,
    v3_partitions,
    v3_reads,
    v3_records,
    v3_topics,
)
from rest_proxy.routes.backlog import Backlog
from rest_proxy.routes.bytes_routes import Shortcut
from rest_proxy.routes.cross_origin import shared
from rest_proxy.routes.media_types import MediaTypes
from rest_proxy.routes.reading import Reading
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
    except (ProxyError, OSError, ValueError) as error:
        log.critical("REST proxy cannot start", extra={"reason": str(error)})
    return 1


@asynccontextmanager
async def running(settings: ProxySettings) -> AsyncIterator[Mapping[str, str]]:
    """A proxy for as long as the block lasts; gives its endpoints."""
    metrics = ProxyMetrics()
    reachability = Reachability(settings.kafka(settings.admin_properties))
    async with AsyncExitStack() as parts:
        registry = parts.enter_context(RegistryClient(settings.registry()))
        # Each part of the proxy adds its routes here; what must be closed enters `parts`.
        routers: list[APIRouter] = []
        producers = Producers(settings, reachability)
        parts.push_async_callback(producers.close)
        admin = Admin(settings.kafka(settings.admin_properties), watch=watching(reachability))
        cluster = KafkaCluster(admin, reachability, address=settings.address)
        decoders = {format_: Decoder(format_, registry) for format_ in Format}
        readers = await parts.enter_async_context(Readers(settings, reachability))
        streams = Streams(readers, limit=settings.streams_max, heartbeat_ms=settings.stream_heartbeat_ms)
        reading = Reading(settings, readers=readers, streams=streams, decoders=decoders, metrics=metrics)
        instances = Instances(settings, reachability=reachability, decoders=decoders, metrics=metrics)
        await parts.enter_async_context(instances.running())
        record_streams = RecordStreams(settings.requests_max_bytes)
        metrics.watch("records_in_flight", "Records on their way to the cluster.", lambda: producers.records_in_flight)
        metrics.watch("bytes_in_flight", "Bytes on their way to the cluster.", lambda: producers.bytes_in_flight)
        metrics.watch("record_streams", "Streams that wait for more records to write.", lambda: record_streams.waiting)
        metrics.watch("streams", "Live streams that are read.", lambda: streams.count)
        metrics.watch("readers", "Pages that are read.", lambda: readers.in_use)
        metrics.watch("readers_idle", "Readers kept for who reads on where they stopped.", lambda: readers.idle)
        metrics.watch("consumer_instances", "Consumer instances that are open.", lambda: instances.count)
        if settings.api_v2_enable:
            routers.append(v2_records.router(reading))
            routers.append(v2_consumers.router(settings, instances=instances))
            routers.append(v2_topics.router(cluster))
            encoders = Encoders(registry, rules.V2)
            routers.append(v2_produce.router(settings, producers=producers, encoders=encoders, metrics=metrics))
        if settings.api_v3_enable:
            routers.append(v3_reads.router(reading, cluster, settings.advertised_listeners))
            administered = (v3_clusters, v3_brokers, v3_topics, v3_partitions, v3_configs)
            routers += [routes.router(cluster, settings.advertised_listeners) for routes in administered]
            routers.append(v3_groups.router(cluster, settings.advertised_listeners))
            routers.append(v3_acls.router(cluster, settings.advertised_listeners))
            sender = RecordSender(producers, Encoders(registry, rules.V3), metrics)
            routers.append(v3_records.router(settings, sender=sender, cluster=cluster, streams=record_streams))
        async with serving(application(routers, settings, metrics), settings) as urls:
            try:
                yield endpoints(urls)
            finally:
                instances.stop()
                record_streams.stop()
                streams.stop()  # while there are still connections to tell it to


def application(routers: Sequence[APIRouter], settings: ProxySettings, metrics: ProxyMetrics) -> Application:
    """The whole HTTP application; to be made inside the event loop that serves it."""
    counts = RequestCounts("caudal_rest_proxy")

    def collect() -> Iterable[Family]:
        yield from metrics.families()
        yield from counts.families()

    app = create_app(title="Caudal REST proxy", description=_DESCRIPTION, error_type=ProxyError, collect=collect)
    for router in routers:
        app.include_router(router)
    document.describe(app)
    unbounded = partial(v3_records.is_stream, max_bytes=settings.request_max_bytes)
    backlog = Backlog(MediaTypes(Shortcut(app, routers)), settings.consumer_untaken_max_bytes)
    metrics.watch("untaken_bytes", "Of large answers that clients have not taken yet.", lambda: backlog.bytes)
    paths = RawPaths(backlog, merges_slashes=True)
    limited = BodyLimits(paths, settings, is_unbounded=unbounded)
    return counts.around(shared(limited, settings))
