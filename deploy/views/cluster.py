"""A cluster: its brokers and their disks, the quorum of its controllers, and partitions that need attention."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.client.models import Broker, Config, LogDir, Quorum, Reassignment, Topic
from core_broker.client.software import Software
from deploy.views.topics import MIN_IN_SYNC

T = TypeVar("T")

_CONCURRENT_BROKERS: Final = 16


class DiskView(msgspec.Struct, frozen=True, kw_only=True):
    """A data folder of a broker."""

    path: str
    online: bool
    size_bytes: int
    """Of all partitions there."""
    total_bytes: int
    free_bytes: int


class BrokerView(msgspec.Struct, frozen=True, kw_only=True):
    """One broker."""

    id: int
    host: str
    port: int
    rack: str | None
    software: str
    """What it runs: "Caudal", "Apache Kafka" or "unknown"."""
    version: str | None
    fenced: bool
    controller: bool
    leaders: int
    replicas: int
    disks: list[DiskView] | None
    """None if the broker does not respond."""


class QuorumMember(msgspec.Struct, frozen=True, kw_only=True):
    """A voter or observer of the metadata log."""

    id: int
    directory_id: str
    leader: bool
    lag_records: int
    lag_ms: int | None


class QuorumView(msgspec.Struct, frozen=True, kw_only=True):
    """The controllers."""

    leader: int
    epoch: int
    high_watermark: int
    voters: list[QuorumMember]
    observers: list[QuorumMember]


class PartitionView(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that needs attention."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int | None


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """A whole cluster."""

    cluster_id: str
    controller: int
    topics: int
    partitions: int
    brokers: list[BrokerView]
    quorum: QuorumView | None
    """None if the cluster does not say."""
    under_replicated: list[PartitionView]
    under_min_isr: list[PartitionView]
    offline: list[PartitionView]
    reassignments: list[Reassignment] | None
    """None if the cluster does not say."""


def describe_cluster(admin: Admin) -> ClusterView:
    """The cluster as it is now."""
    found, topics = admin.cluster(), admin.all_topics()
    brokers = _or_default(admin.maintenance.registered_brokers, found.brokers)
    quorum = _or_default(admin.maintenance.quorum, None)
    # The controller that brokers name to clients is any broker, where controllers are separate processes.
    controller = found.controller_id if quorum is None else quorum.leader_id
    minimums = _min_in_sync(admin, [topic.name for topic in topics])
    partitions = list(_partitions(topics, minimums))
    return ClusterView(
        cluster_id=found.cluster_id,
        controller=controller,
        topics=len(topics),
        partitions=len(partitions),
        brokers=_brokers(admin, brokers, topics, controller),
        quorum=None if quorum is None else quorum_view(quorum),
        under_replicated=[item for item in partitions if len(item.isr) < len(item.replicas)],
        under_min_isr=[item for item in partitions if item.min_isr is not None and len(item.isr) < item.min_isr],
        offline=[item for item in partitions if item.leader < 0],
        reassignments=_or_default(admin.reassignments, None),
    )


def quorum_view(quorum: Quorum) -> QuorumView:
    """The quorum with the lag of each member behind the leader."""
    everyone = (*quorum.voters, *quorum.observers)
    leader = next((item for item in everyone if item.id == quorum.leader_id), None)
    end = leader.end_offset if leader else quorum.high_watermark
    now_ms = leader.caught_up_ms if leader else -1
    voters, observers = (
        [
            QuorumMember(
                id=item.id,
                directory_id=item.directory_id,
                leader=item.id == quorum.leader_id,
                lag_records=max(0, end - item.end_offset),
                lag_ms=max(0, now_ms - item.caught_up_ms) if min(now_ms, item.caught_up_ms) >= 0 else None,
            )
            for item in members
        ]
        for members in (quorum.voters, quorum.observers)
    )
    return QuorumView(
        leader=quorum.leader_id,
        epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        voters=voters,
        observers=observers,
    )


def replica_sizes(admin: Admin) -> dict[int, dict[tuple[str, int], int]]:
    """The bytes of each replica on each live broker; none for a broker that does not respond."""

    def sizes(broker: Broker) -> dict[tuple[str, int], int]:
        nothing: list[LogDir] = []
        disks = _or_default(lambda: admin.maintenance.log_dirs(broker), nothing)
        return {name: size_bytes for disk in disks for name, size_bytes in disk.partition_bytes.items()}

    live = [broker for broker in admin.maintenance.registered_brokers() if not broker.is_fenced]
    with ThreadPoolExecutor(_CONCURRENT_BROKERS) as threads:
        return {broker.id: found for broker, found in zip(live, threads.map(sizes, live), strict=True)}


def _brokers(admin: Admin, brokers: Iterable[Broker], topics: Iterable[Topic], controller: int) -> list[BrokerView]:
    partitions = [partition for topic in topics for partition in topic.partitions]
    leaders = Counter(partition.leader for partition in partitions)
    replicas = Counter(broker_id for partition in partitions for broker_id in partition.replicas)

    def view(broker: Broker) -> BrokerView:
        software, disks = Software(), None
        if not broker.is_fenced:
            software = _or_default(lambda: admin.maintenance.software(broker), software)
            found = _or_default(lambda: admin.maintenance.log_dirs(broker), None)
            disks = None if found is None else [_disk(item) for item in found]
        return BrokerView(
            id=broker.id,
            host=broker.host,
            port=broker.port,
            rack=broker.rack,
            software=software.name,
            version=software.version,
            fenced=broker.is_fenced,
            controller=broker.id == controller,
            leaders=leaders[broker.id],
            replicas=replicas[broker.id],
            disks=disks,
        )

    with ThreadPoolExecutor(_CONCURRENT_BROKERS) as threads:
        return list(threads.map(view, brokers))


def _disk(found: LogDir) -> DiskView:
    return DiskView(
        path=found.path,
        online=found.is_online,
        size_bytes=sum(found.partition_bytes.values()),
        total_bytes=found.total_bytes,
        free_bytes=found.usable_bytes,
    )


def _partitions(topics: Iterable[Topic], minimums: Mapping[str, int]) -> Iterable[PartitionView]:
    for topic in topics:
        for item in topic.partitions:
            yield PartitionView(
                topic=topic.name,
                partition=item.index,
                leader=item.leader,
                replicas=item.replicas,
                isr=item.in_sync,
                # As brokers count it: a partition cannot need more replicas than it has.
                min_isr=min(minimums[topic.name], len(item.replicas)) if topic.name in minimums else None,
            )


def _min_in_sync(admin: Admin, names: list[str]) -> dict[str, int]:
    minimums = {}
    nothing: dict[str, list[Config]] = {}
    for name, configs in _or_default(lambda: admin.configs_of_topics(names), nothing).items():
        value = next((config.value for config in configs if config.key == MIN_IN_SYNC), None)
        with suppress(TypeError, ValueError):
            minimums[name] = int(value)  # type: ignore[arg-type] # None is a TypeError, too
    return minimums


def _or_default(ask: Callable[[], T], default: T) -> T:
    """An answer, or the default where a cluster cannot give one: it is old, or in trouble, or refuses this user."""
    try:
        return ask()
    except ClientError:
        return default
