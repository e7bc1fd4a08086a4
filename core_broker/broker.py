"""The composition root: creates every part of a broker, starts them in order and stops them in reverse order."""

import asyncio
import logging
import resource
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from core_broker.cluster.controller import Controller
from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.effective_settings import broker_settings
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.metadata import MetadataImage, ResourceType
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.handlers.context import Services
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.handlers.table import advertised_versions
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.schema_guard.guard import SchemaGuard
from core_broker.server.metrics_page import families
from core_broker.server.server import Server
from core_broker.service import lifecycle, logs
from core_broker.service.clock import Clock, SystemClock
from core_broker.service.metrics import MetricsServer
from core_broker.settings import BrokerSettings
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.markers import MarkerRequest
from core_broker.transactions.producer_ids import ProducerIds

log = logging.getLogger(__name__)


def run(settings: BrokerSettings) -> int:
    """Run a broker until it is stopped by a signal; returns the exit code of the process."""
    logs.configure(level=settings.logging_level, style=settings.logging_format)
    try:
        return lifecycle.run(broker(settings), name="broker")
    except BrokerError as error:
        log.critical("broker cannot start", extra={"reason": error.message})
    except OSError as error:
        log.critical("broker cannot start", extra={"reason": str(error)})
    return 1


@asynccontextmanager
async def broker(settings: BrokerSettings, clock: Clock | None = None) -> AsyncIterator[Mapping[str, str]]:
    """A running broker for as long as the block lasts; yields its endpoints."""
    clock = clock or SystemClock()
    _allow_many_files()
    async with AsyncExitStack() as stack:
        server = await _start(settings, clock, stack)
        metrics_server = MetricsServer(
            settings.metrics_listener,
            collect=lambda: families(server.services),
            required=settings.is_set("metrics.listener"),
        )
        stack.enter_context(metrics_server)
        endpoints = {"listeners": ",".join(map(str, server.listeners))}
        if metrics_server.url is not None:
            endpoints["metrics"] = metrics_server.url
        yield endpoints


async def _start(settings: BrokerSettings, clock: Clock, stack: AsyncExitStack) -> Server:
    """Open the logs, replay the metadata, bind the ports, register the broker, and only then accept clients."""
    metrics = BrokerMetrics()
    logs_on_disk = LogStore(settings.log_dirs, settings, clock)
    logs_on_disk.load()
    stack.callback(logs_on_disk.close)
    if logs_on_disk.cluster_id is None:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the log directories have no cluster id")
    metadata = MetadataQuorum(
        Path(settings.metadata_log_dir) if settings.metadata_log_dir else logs_on_disk.directories[0].path,
        cluster_id=logs_on_disk.cluster_id,
        settings=settings,
        clock=clock,
    )
    metadata.start()
    stack.push_async_callback(metadata.close)
    server = Server(settings, metrics)
    stack.callback(server.close)
    await server.bind()
    partitions = Partitions(
        local_id=settings.node_id, logs=logs_on_disk, settings=settings, clock=clock, metrics=metrics
    )
    controller = Controller(metadata, settings, clock, prepare=partitions.prepare)
    await controller.register_broker(
        AdvertisedEndpoints.of(server.listeners, settings),
        log_dirs=[directory.directory_id for directory in logs_on_disk.directories],
        was_clean=logs_on_disk.was_clean,
    )
    groups = _group_coordinator(settings, clock, metadata, partitions)
    transactions = _transaction_coordinator(settings, clock, metadata, controller, partitions, groups)
    _follow_metadata(metadata, partitions, groups, transactions)
    logs_on_disk.remove_strays({name: topic.topic_id for name, topic in metadata.image.topics.items()})
    schema_guard = SchemaGuard(settings, clock=clock, metrics=metrics)
    stack.push_async_callback(schema_guard.close)
    services = Services(
        settings=settings,
        clock=clock,
        metadata=metadata,
        controller=controller,
        partitions=partitions,
        logs=logs_on_disk,
        groups=groups,
        transactions=transactions,
        schema_guard=schema_guard,
        fetch_sessions=FetchSessions(clock, slots_max=settings.max_incremental_fetch_session_cache_slots),
        metrics=metrics,
        api_versions=advertised_versions(),
    )

    def configure(image: MetadataImage) -> None:
        """Apply the settings in effect to every part that allows changes at run time."""
        current = broker_settings(image, settings)
        server.configure(current)
        groups.settings = current
        logs_on_disk.configure(current)

    metadata.subscribe(lambda image, _: configure(image))
    configure(metadata.image)
    await stack.enter_async_context(_running(logs_on_disk.run(), groups.run(), transactions.run(), server.run()))
    server.start(services)
    return server


def _group_coordinator(
    settings: BrokerSettings, clock: Clock, metadata: MetadataQuorum, partitions: Partitions
) -> GroupCoordinator:
    return GroupCoordinator(
        settings=settings,
        clock=clock,
        partitions=partitions,
        partition_count=lambda: _partition_count(metadata, OFFSETS_TOPIC, settings.offsets_topic_num_partitions),
        topics=lambda: metadata.image.topics,
        group_overrides=lambda group_id: metadata.image.config_of(ResourceType.GROUP, group_id),
    )


def _transaction_coordinator(
    settings: BrokerSettings,
    clock: Clock,
    metadata: MetadataQuorum,
    controller: Controller,
    partitions: Partitions,
    groups: GroupCoordinator,
) -> TransactionCoordinator:
    async def write_marker(topic: str, index: int, marker: MarkerRequest) -> ErrorCode:
        """Write a marker to a local partition; in the offsets topic it also completes the pending commits."""
        try:
            await partitions.get(topic, index).append_marker(
                marker.producer_id,
                marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        except BrokerError as error:
            return error.code
        if topic == OFFSETS_TOPIC:
            groups.complete_transaction(index, marker.producer_id, commit=marker.commit)
        return ErrorCode.NONE

    return TransactionCoordinator(
        settings=settings,
        clock=clock,
        partitions=partitions,
        partition_count=lambda: _partition_count(
            metadata, TRANSACTIONS_TOPIC, settings.transaction_state_log_num_partitions
        ),
        producer_ids=ProducerIds(controller.allocate_producer_ids),
        write_marker=write_marker,
        transaction_version=lambda: metadata.image.features.get("transaction.version", 0),
    )


def _partition_count(metadata: MetadataQuorum, topic: str, default: int) -> int:
    """How many partitions an internal topic has, or will have once it is created."""
    found = metadata.image.topics.get(topic)
    return default if found is None else len(found.partitions)


def _follow_metadata(
    metadata: MetadataQuorum, partitions: Partitions, groups: GroupCoordinator, transactions: TransactionCoordinator
) -> None:
    """Subscribe partitions and coordinators to the metadata log, starting with what was replayed."""
    coordinators: dict[str, GroupCoordinator | TransactionCoordinator] = {
        OFFSETS_TOPIC: groups,
        TRANSACTIONS_TOPIC: transactions,
    }

    def on_leadership(partition: Partition) -> None:
        coordinator = coordinators.get(partition.topic)
        if coordinator is not None:
            coordinator.become_leader(partition.index, partition.leader_epoch)

    def on_removed(partition: Partition) -> None:
        coordinator = coordinators.get(partition.topic)
        if coordinator is not None:
            coordinator.resign(partition.index)

    partitions.on_leadership.append(on_leadership)
    partitions.on_removed.append(on_removed)
    partitions.on_topics_removed.append(groups.on_topics_deleted)
    partitions.synchronise(metadata.image)
    metadata.subscribe(partitions.apply)


@asynccontextmanager
async def _running(*workers: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run background workers for as long as the block lasts."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(worker) for worker in workers]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def _allow_many_files() -> None:
    """Raise the soft limit of open files to the hard limit: connections and segments need many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
