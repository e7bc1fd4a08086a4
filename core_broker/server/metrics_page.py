"""The content of `/metrics`: the broker's counters under the names that dashboards for Kafka already use."""

from collections.abc import Callable, Iterator
from contextlib import suppress

from core_broker.cluster.partition import Partition
from core_broker.groups.offsets import OffsetStore
from core_broker.handlers.context import Services
from core_broker.log.log_directory import DiskSpace
from core_broker.metrics import BrokerMetrics, LoginStats, RequestStats, TopicTraffic
from core_broker.security.authorizer import Authorizer
from core_broker.server.cluster_metrics import (
    applied_families,
    controller_families,
    quorum_families,
    replication_families,
)
from core_broker.server.quota_metrics import quota_families
from core_broker.service.metrics import Family, counter, gauge


def families(services: Services) -> Iterator[Family]:
    """All metrics of a node. Called by the metrics thread, so it only reads, and copies collections first."""
    yield from _request_families(services.metrics)
    yield from _connection_families(services.metrics)
    yield from _login_families(services.metrics)
    if services.authorizer is not None:
        yield from _authorizer_families(services.authorizer)
    yield from _disk_families(services)
    yield from quota_families(services.quotas, services.clock)
    yield from quorum_families(services.metadata, services.clock)
    if services.settings.is_controller:
        yield from controller_families(services.controller, services.metadata)
    if services.settings.is_broker:
        yield from _broker_families(services)


def _broker_families(services: Services) -> Iterator[Family]:
    yield from _topic_families(services.metrics)
    yield from _registry_families(services.metrics)
    yield from replication_families(services.partitions, services.metadata.image)
    yield from applied_families(services.partitions, services.metadata)
    yield from _log_families(list(services.partitions))
    yield from _coordinator_families(services)
    yield from _group_families(services)


_TOPIC_COUNTERS: tuple[tuple[str, str, Callable[[TopicTraffic], int]], ...] = (
    ("messagesin", "Records produced", lambda t: t.messages_in),
    ("bytesin", "Bytes produced", lambda t: t.bytes_in),
    ("bytesout", "Bytes fetched", lambda t: t.bytes_out),
    ("totalproducerequests", "Produce requests", lambda t: t.produce_requests),
    ("totalfetchrequests", "Fetches answered", lambda t: t.fetch_requests),
    ("failedproducerequests", "Produce requests refused", lambda t: t.failed_produce_requests),
    ("failedfetchrequests", "Fetches refused", lambda t: t.failed_fetch_requests),
    ("invalidschemaidrecords", "Records refused for their schema id", lambda t: t.unregistered_records),
    ("replicationbytesin", "Bytes fetched from leaders", lambda t: t.replication_bytes_in),
    ("replicationbytesout", "Bytes fetched by followers", lambda t: t.replication_bytes_out),
)


def _topic_families(metrics: BrokerMetrics) -> Iterator[Family]:
    topics = list(metrics.topics.items())
    for name, help_text, value in _TOPIC_COUNTERS:
        yield Family(
            name=f"kafka_server_brokertopicmetrics_{name}_total",
            help=f"{help_text}, by topic",
            kind="counter",
            labels=("topic",),
            samples=[((topic,), value(traffic)) for topic, traffic in topics],
        )


_REQUEST_COUNTERS: tuple[tuple[str, str, Callable[[RequestStats], float]], ...] = (
    ("requests_total", "Requests answered", lambda s: s.count),
    ("totaltimems_sum_total", "Milliseconds from request to answer, added up", lambda s: s.seconds * 1000),
)


def _request_families(metrics: BrokerMetrics) -> Iterator[Family]:
    requests = list(metrics.requests.items())
    for name, help_text, value in _REQUEST_COUNTERS:
        yield Family(
            name=f"kafka_network_requestmetrics_{name}",
            help=f"{help_text}, by API",
            kind="counter",
            labels=("request",),
            samples=[((api,), value(stats)) for api, stats in requests],
        )
    yield Family(
        name="kafka_network_requestmetrics_totaltimems_max",
        help="Longest time from request to answer since start, by API",
        labels=("request",),
        samples=[((api,), stats.seconds_max * 1000) for api, stats in requests],
    )


def _connection_families(metrics: BrokerMetrics) -> Iterator[Family]:
    yield gauge("kafka_server_socket_server_metrics_connection_count", "Open connections", metrics.connections_open)
    for name, help_text, value in (
        ("connection_creation_total", "Connections accepted", metrics.connections_accepted),
        ("connection_refused_total", "Connections refused by a limit", metrics.connections_refused),
        ("expired_connections_killed_count_total", "Clients that did not log in again", metrics.sessions_expired),
        ("bad_requests_total", "Requests that could not be read", metrics.frames_refused),
    ):
        yield counter(f"kafka_server_socket_server_metrics_{name}", help_text, value)


_LOGIN_COUNTERS: tuple[tuple[str, str, Callable[[LoginStats], int]], ...] = (
    ("successful_authentication", "Clients whose TLS or SASL succeeded", lambda s: s.succeeded),
    ("failed_authentication", "Clients whose TLS or SASL failed", lambda s: s.failed),
    ("successful_reauthentication", "Clients that logged in again", lambda s: s.renewals_succeeded),
    ("failed_reauthentication", "Clients that failed to log in again", lambda s: s.renewals_failed),
)


def _login_families(metrics: BrokerMetrics) -> Iterator[Family]:
    logins = list(metrics.logins.items())
    for name, help_text, value in _LOGIN_COUNTERS:
        yield Family(
            name=f"kafka_server_socket_server_metrics_{name}_total",
            help=f"{help_text}, by listener and mechanism",
            kind="counter",
            labels=("listener", "mechanism"),
            samples=[(labels, value(stats)) for labels, stats in logins],
        )


def _authorizer_families(authorizer: Authorizer) -> Iterator[Family]:
    yield gauge("kafka_server_authorizer_metrics_acls_total_count", "ACLs of the cluster", len(authorizer.acls))
    yield Family(
        name="kafka_server_authorizer_metrics_decisions_total",
        help="Questions whether a client may do something, by outcome; one request may need several",
        kind="counter",
        labels=("outcome",),
        samples=[(("allowed",), authorizer.allowed), (("denied",), authorizer.denied)],
    )


def _registry_families(metrics: BrokerMetrics) -> Iterator[Family]:
    for name, help_text, value in (
        ("questions_total", "Questions about schema ids to the registry", metrics.registry_questions),
        ("failures_total", "Questions that no registry answered", metrics.registry_failures),
    ):
        yield counter(f"caudal_schema_guard_registry_{name}", help_text, value)


_LOG_GAUGES: tuple[tuple[str, str, Callable[[Partition], float]], ...] = (
    ("size", "Bytes of the log", lambda p: p.log.size_bytes),
    ("logstartoffset", "First offset", lambda p: p.log.start_offset),
    ("logendoffset", "Next offset", lambda p: p.log.end_offset),
)


def _log_families(partitions: list[Partition]) -> Iterator[Family]:
    for name, help_text, value in _LOG_GAUGES:
        yield Family(
            name=f"kafka_log_log_{name}",
            help=f"{help_text}, by partition",
            labels=("topic", "partition"),
            samples=[((p.topic, str(p.index)), value(p)) for p in partitions],
        )


_DISK_GAUGES: tuple[tuple[str, str, Callable[[DiskSpace], int]], ...] = (
    ("total", "Bytes of the disk", lambda space: space.total_bytes),
    ("usable", "Bytes of the disk that can still be written", lambda space: space.usable_bytes),
)


def _disk_families(services: Services) -> Iterator[Family]:
    found = []
    for directory in services.logs.directories:
        with suppress(OSError):  # a disk that has failed is left out
            found.append((str(directory.path.absolute()), directory.space()))
    for name, help_text, value in _DISK_GAUGES:
        yield Family(
            name=f"caudal_broker_log_dir_{name}_bytes",
            help=f"{help_text}, by directory of log.dirs",
            labels=("log_dir",),
            samples=[((path,), value(space)) for path, space in found],
        )


def _coordinator_families(services: Services) -> Iterator[Family]:
    yield gauge(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "Groups that this broker coordinates",
        sum(len(shard.groups) for shard in list(services.groups.loaded_shards())),
    )
    yield gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions",
        len(services.fetch_sessions),
    )


def _group_families(services: Services) -> Iterator[Family]:
    """Group metrics under the names of the well-known kafka_exporter."""
    members: list[tuple[tuple[str, ...], float]] = []
    offsets: list[tuple[tuple[str, ...], float]] = []
    lags: list[tuple[tuple[str, ...], float]] = []
    for shard in list(services.groups.loaded_shards()):
        members += [((group_id,), len(group.members)) for group_id, group in list(shard.groups.items())]
        for labels, offset in _committed_offsets(shard.offsets):
            offsets.append((labels, offset))
            _, topic, index = labels
            partition = services.partitions.find(topic, int(index))
            if partition is not None:  # as leader or, a moment later, as follower
                lags.append((labels, max(0, partition.high_watermark - offset)))
    label_names = ("consumergroup", "topic", "partition")
    yield Family(
        name="kafka_consumergroup_members", help="Members, by group", labels=("consumergroup",), samples=members
    )
    yield Family(
        name="kafka_consumergroup_current_offset", help="Committed offset", labels=label_names, samples=offsets
    )
    yield Family(
        name="kafka_consumergroup_lag", help="Records behind the committed offset", labels=label_names, samples=lags
    )


def _committed_offsets(store: OffsetStore) -> Iterator[tuple[tuple[str, str, str], int]]:
    for group_id in store.known_group_ids():
        for topic, partitions in list(store.of_group(group_id).items()):
            for index, committed in list(partitions.items()):
                yield (group_id, topic, str(index)), committed.offset
