"""The composition root: creates every part of a broker, starts them in order and stops them in reverse order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from core_broker.cluster.bootstrap_file import BootstrapFile
from core_broker.cluster.controller.controller import Controller, LeaderRebalance
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.controller_registration import ControllerRegistration
from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.effective_settings import broker_settings
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.features import GROUP_VERSION, TRANSACTION_VERSION
from core_broker.cluster.joining import find_cluster_id
from core_broker.cluster.login_records import LoginRecords
from core_broker.cluster.membership import QuorumMembership
from core_broker.cluster.metadata import MetadataImage, ResourceType
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.registration import BrokerRegistration
from core_broker.cluster.replication.fetchers import ReplicaFetchers
from core_broker.cluster.replication.isr_changes import IsrChanges
from core_broker.cluster.topic_creation import TopicCreation
from core_broker.cluster.unsupported_data import refuse_unsupported_data
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.handlers.context import Services
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.handlers.table import CONTROLLER_APIS, advertised_versions
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.peers.peers import Peers
from core_broker.peers.security import PeerSecurity
from core_broker.protocol.fields import Message
from core_broker.schema_guard.guard import SchemaGuard
from core_broker.security.audit import AuditLog, audit_log_of
from core_broker.security.authorizer import authorizer_of
from core_broker.security.credentials import ScramCredentials
from core_broker.security.quotas import ClientQuotas, Window
from core_broker.security.sasl.listener import SaslListeners
from core_broker.security.sasl.scram_server import ScramServices, fake_salt_key
from core_broker.security.tokens import TokenStore
from core_broker.server.dispatch import call_handler
from core_broker.server.metrics_page import families
from core_broker.server.metrics_tls import metrics_tls
from core_broker.server.server import Server
from core_broker.service import lifecycle, logs
from core_broker.service.clock import Clock, SystemClock
from core_broker.service.metrics import MetricsServer
from core_broker.settings import BrokerSettings
from core_broker.transactions.broker_calls import BrokerCalls
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.marker_delivery import LocalMarkers, MarkerDelivery
from core_broker.transactions.producer_ids import ProducerIds, allocate_from_controller
from core_broker.transactions.verification import TransactionVerifier

log = logging.getLogger(__name__)

_STORAGE_CHECK_SECONDS: Final = 0.5


def run(settings: BrokerSettings) -> int:
    """Run a broker until it is stopped by a signal; returns the exit code of the process."""
    logs.configure(level=settings.logging_level, style=settings.logging_format)
    try:
        return lifecycle.run(broker(settings), name="broker", waits_for_others=not settings.forms_cluster)
    except BrokerError as error:
        log.critical("broker cannot start", extra={"reason": error.message})
    except OSError as error:
        log.critical("broker cannot start", extra={"reason": str(error)})
    except ExceptionGroup as errors:  # of the background work
        failures, others = errors.split((BrokerError, OSError))
        if failures is None or others is not None:
            raise
        log.critical("broker has failed", extra={"reason": str(failures.exceptions[0])})
    return 1


@asynccontextmanager
async def broker(settings: BrokerSettings, clock: Clock | None = None) -> AsyncIterator[Mapping[str, str]]:
    """A running broker for as long as the block lasts; yields its endpoints."""
    clock = clock or SystemClock()
    lifecycle.allow_many_files()
    async with AsyncExitStack() as stack:
        metrics = BrokerMetrics()
        links, server = Links.of(settings), Server(settings, metrics)
        await start(settings, clock, stack, metrics=metrics, links=links, server=server)
        metrics_server = MetricsServer(
            settings.metrics_listener,
            collect=lambda: families(server.services),
            required=settings.is_set("metrics.listener"),
            tls=metrics_tls(settings),
        )
        stack.enter_context(metrics_server)
        endpoints = {"listeners": ",".join(map(str, server.listeners or server.controller_listeners))}
        if metrics_server.url is not None:
            endpoints["metrics"] = metrics_server.url
        yield endpoints


async def start(
    settings: BrokerSettings,
    clock: Clock,
    stack: AsyncExitStack,
    *,
    metrics: BrokerMetrics,
    links: "Links",
    server: Server,
) -> None:
    """Open the logs, join the quorum, register the broker, replay the metadata, and only then accept clients.

    The stack stops everything again, in reverse order.
    """
    audit = stack.enter_context(audit_log_of(settings, clock))
    refuse_unsupported_data(settings)
    logs_on_disk = LogStore(settings.log_dirs, settings, clock)
    logs_on_disk.load()
    registrations: list[BrokerRegistration] = []
    stack.callback(lambda: logs_on_disk.close(broker_epoch=_clean_epoch(registrations, logs_on_disk)))
    links.warn_about_rights(settings)
    stack.push_async_callback(links.close)
    stack.callback(server.close)
    await server.bind()
    if logs_on_disk.cluster_id is None:
        logs_on_disk.adopt_cluster_id(await find_cluster_id(links.to_controllers, settings))
    metadata = MetadataQuorum(
        logs_on_disk.metadata_directory.path,
        cluster_id=logs_on_disk.cluster_id or "",
        settings=settings,
        clock=clock,
        peers=links.to_controllers,
        directory_id=logs_on_disk.metadata_directory.directory_id,
        endpoints=AdvertisedEndpoints.of(server.controller_listeners, settings).by_name(),
    )
    bootstrap = BootstrapFile(logs_on_disk.metadata_directory.path)
    bootstrap.read()
    parts = _Parts(settings, clock, metrics, logs_on_disk, links, metadata, server, audit, bootstrap.credentials)
    registrations.append(parts.registration)
    sasl = SaslListeners(settings, clock, parts.scram)
    await sasl.load_keys()
    server.use_sasl(sasl)
    metadata.subscribe(lambda image, _: bootstrap.remove_after_use(image))
    stack.push_async_callback(parts.schema_guard.close)
    metadata.start()
    parts.quotas.follow(metadata.image.carried)
    stack.push_async_callback(metadata.close)
    parts.login_records.read_disk()
    bootstrap.remove_after_use(metadata.image)
    server.start_controller(parts.services)
    await stack.enter_async_context(
        _running(
            metadata.watch(),
            parts.follow_acls(),
            parts.controller.run(),
            parts.membership.run(),
            parts.controller_registration.run(),
            server.watch_certificates(),
            sasl.run(),
        )
    )
    if settings.is_broker:
        await _start_broker(parts, stack)


@dataclass(frozen=True, slots=True)
class Links:
    """Connections to other nodes: to the listener that brokers use among themselves, and to that of controllers."""

    to_brokers: Peers
    to_controllers: Peers

    @classmethod
    def of(cls, settings: BrokerSettings) -> "Links":
        """Connections with the security that the settings ask for."""
        client_id = f"node-{settings.node_id}"
        securities = PeerSecurity.for_brokers(settings), PeerSecurity.for_controllers(settings)
        return cls(*(Peers(client_id=client_id, security=security) for security in securities))

    def warn_about_rights(self, settings: BrokerSettings) -> None:
        """Say who must be a super user: nodes cannot load ACLs before they may talk to each other."""
        if settings.authorizer_class_name is None:
            return
        listeners = {connection.listener for connection in settings.node_connections}
        for security in (self.to_brokers.security, self.to_controllers.security):
            principal = security.principal() if security.listener in listeners else None
            if principal is not None and str(principal) not in settings.super_users:
                reason = "unless an ACL allows it CLUSTER_ACTION, no node may talk to another; add it to super.users"
                extra = {"principal": str(principal), "listener": security.listener, "reason": reason}
                log.warning("the principal of this node is not a super user", extra=extra)

    def configure(self, settings: BrokerSettings) -> None:
        """Open new connections with the settings in effect."""
        for peers in (self.to_brokers, self.to_controllers):
            peers.security.configure(settings)

    async def close(self) -> None:
        """Close all connections."""
        await self.to_brokers.close()
        await self.to_controllers.close()


class _Parts:
    """Everything that a node is made of. Only constructed here; started in order by `start`."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        metrics: BrokerMetrics,
        logs_on_disk: LogStore,
        links: "Links",
        metadata: MetadataQuorum,
        server: Server,
        audit: AuditLog,
        first_records: Sequence[Message],
    ) -> None:
        self.settings, self.metadata, self.logs, self.server = settings, metadata, logs_on_disk, server
        self.quotas = _client_quotas(metadata, settings, clock)
        self.acls_loaded = asyncio.Event()
        local_id = settings.node_id
        self.links = links
        self.channel = ControllerChannel(
            links.to_controllers, metadata, local=lambda request: call_handler(request, self.services)
        )
        self.partitions = Partitions(
            local_id=local_id, logs=logs_on_disk, settings=settings, clock=clock, metrics=metrics
        )
        self.controller = Controller(
            metadata,
            settings,
            clock,
            prepare=self.partitions.prepare,
            session_seconds=settings.broker_session_timeout_ms / 1000,
            rebalance=LeaderRebalance(settings.leader_imbalance_check_interval_seconds)
            if settings.auto_leader_rebalance_enable
            else None,
            first_records=first_records,
        )
        self.membership = QuorumMembership(metadata, self.channel, settings=settings)
        self.controller_registration = ControllerRegistration(
            metadata,
            self.channel,
            settings=settings,
            endpoints=AdvertisedEndpoints.of(server.controller_listeners, settings),
        )
        self.registration = BrokerRegistration(
            self.channel,
            settings=settings,
            cluster_id=metadata.cluster_id,
            endpoints=AdvertisedEndpoints.of(server.listeners, settings),
            log_dirs=[directory.directory_id for directory in logs_on_disk.directories],
            previous_epoch=logs_on_disk.previous_broker_epoch,
            image=lambda: metadata.image,
            has_quorum=lambda: not metadata.has_lost_majority,
        )
        self.fetchers = ReplicaFetchers(
            self.partitions,
            local_id=local_id,
            broker_epoch=lambda: self.registration.epoch,
            image=lambda: metadata.image,
            peers=links.to_brokers,
            logs=logs_on_disk,
            settings=settings,
            clock=clock,
        )
        self.isr_changes = IsrChanges(
            self.partitions,
            local_id=local_id,
            broker_epoch=lambda: self.registration.epoch,
            channel=self.channel,
            settings=settings,
        )
        calls = BrokerCalls(
            links.to_brokers.call, image=lambda: metadata.image, listener_name=settings.inter_broker_listener
        )
        self.groups = self._group_coordinator(clock)
        local_markers = LocalMarkers(self.partitions, self.groups.complete_transaction)
        markers = MarkerDelivery(local_markers, calls, local_id=local_id, image=lambda: metadata.image)
        self.transactions = self._transaction_coordinator(clock, markers)
        self.schema_guard = SchemaGuard(settings, clock=clock, metrics=metrics)
        self.authorizer = authorizer_of(settings, on_denial=audit.denied)
        credentials = ScramCredentials(lambda: metadata.image.carried)
        token_secret = settings.delegation_token_secret_key
        self.login_records = LoginRecords(metadata, first_records)
        tokens = TokenStore(lambda: metadata.image.carried, secret_key=token_secret, clock=clock)
        self.scram = ScramServices(
            users=ScramCredentials(self.login_records),
            tokens=tokens if tokens.is_enabled else None,
            clock=clock,
            fake_salt_key=fake_salt_key(metadata.cluster_id, token_secret),
        )
        self.services = Services(
            settings=settings,
            clock=clock,
            metadata=metadata,
            controller=self.controller,
            controller_channel=self.channel,
            partitions=self.partitions,
            logs=logs_on_disk,
            groups=self.groups,
            transactions=self.transactions,
            transaction_verifier=TransactionVerifier(
                self.transactions, calls, local_id=local_id, image=lambda: metadata.image
            ),
            local_markers=local_markers,
            topic_creation=TopicCreation(self.channel, metadata, settings=self.current_settings),
            schema_guard=self.schema_guard,
            quotas=self.quotas,
            fetch_sessions=FetchSessions(clock, slots_max=settings.max_incremental_fetch_session_cache_slots),
            metrics=metrics,
            credentials=credentials,
            tokens=tokens,
            api_versions=advertised_versions(),
            controller_api_versions=advertised_versions(CONTROLLER_APIS),
            check_stores=server.check_stores,
            authorizer=self.authorizer,
            audit=audit,
        )

    def current_settings(self) -> BrokerSettings:
        """The settings with their dynamic changes."""
        return broker_settings(self.metadata.image, self.settings)

    def _group_coordinator(self, clock: Clock) -> GroupCoordinator:
        image = self._image
        return GroupCoordinator(
            settings=self.settings,
            clock=clock,
            partitions=self.partitions,
            partition_count=lambda: _partition_count(
                image(), OFFSETS_TOPIC, self.settings.offsets_topic_num_partitions
            ),
            topics=lambda: image().topics,
            group_overrides=lambda group_id: image().config_of(ResourceType.GROUP, group_id),
            group_version=lambda: image().features.get(GROUP_VERSION, 0),
        )

    def _transaction_coordinator(self, clock: Clock, markers: MarkerDelivery) -> TransactionCoordinator:
        image = self._image
        return TransactionCoordinator(
            settings=self.settings,
            clock=clock,
            partitions=self.partitions,
            partition_count=lambda: _partition_count(
                image(), TRANSACTIONS_TOPIC, self.settings.transaction_state_log_num_partitions
            ),
            producer_ids=ProducerIds(
                allocate_from_controller(
                    self.channel, broker_id=self.settings.node_id, broker_epoch=lambda: self.registration.epoch
                )
            ),
            write_marker=markers.write,
            transaction_version=lambda: image().features.get(TRANSACTION_VERSION, 0),
        )

    def _image(self) -> MetadataImage:
        return self.metadata.image

    def follow_metadata(self) -> None:
        """Subscribe partitions and coordinators to the metadata log, starting with what was replayed."""
        coordinators: dict[str, GroupCoordinator | TransactionCoordinator] = {
            OFFSETS_TOPIC: self.groups,
            TRANSACTIONS_TOPIC: self.transactions,
        }

        def on_leadership(partition: Partition) -> None:
            coordinator = coordinators.get(partition.topic)
            if coordinator is not None:
                coordinator.become_leader(partition.index, partition.leader_epoch)

        def on_leadership_lost(partition: Partition) -> None:
            coordinator = coordinators.get(partition.topic)
            if coordinator is not None:
                coordinator.resign(partition.index)

        partitions, metadata = self.partitions, self.metadata
        partitions.on_leadership.append(on_leadership)
        partitions.on_leadership_lost.append(on_leadership_lost)
        partitions.on_removed.append(on_leadership_lost)
        partitions.on_topics_removed.append(self.groups.on_topics_deleted)
        partitions.synchronise(metadata.image)
        metadata.subscribe(partitions.apply)
        metadata.subscribe(lambda image, _: self.configure(image))
        self.configure(metadata.image)

    async def follow_acls(self) -> None:
        """Load the ACLs once they are known, and follow their changes; only then start the listeners that need them."""
        await self.metadata.caught_up.wait()
        authorizer = self.authorizer
        if authorizer is not None:
            self.metadata.subscribe(lambda _, records: authorizer.apply(records))
            authorizer.load(self.metadata.image.carried.values())
        self.server.start_other_controller_listeners()
        self.acls_loaded.set()

    async def hand_over(self) -> None:
        """Have the leaders moved to other brokers before this one stops; without others there is nothing to move.

        A broker that no longer follows the metadata would wait in vain, while its voter is missing in the quorum.
        """
        if self._has_others() and self.settings.controlled_shutdown_enable and not self.metadata.has_failed:
            await self.registration.shut_down()

    async def watch_storage(self) -> None:
        """Raise when a log can no longer be written while there are other brokers: one of them must lead instead.

        A broker without others goes on, because reads still work.
        """
        while True:
            await asyncio.sleep(_STORAGE_CHECK_SECONDS)
            failed = next((found for found in self.logs if found.failure is not None), None)
            if failed is not None and self._has_others():
                name = f"{failed.topic}-{failed.partition}"
                text = f"the log of {name} cannot be written: {failed.failure}; fix the disk and start the broker again"
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, text)

    def _has_others(self) -> bool:
        return any(broker.broker_id != self.settings.node_id for broker in self.metadata.image.live_brokers())

    def configure(self, image: MetadataImage) -> None:
        """Apply the settings in effect to every part that allows changes at run time."""
        current = broker_settings(image, self.settings)
        self.server.configure(current)
        self.links.configure(current)
        self.groups.settings = current
        self.logs.configure(current)


async def _start_broker(parts: _Parts, stack: AsyncExitStack) -> None:
    """Register, catch up with the metadata log, host the partitions, and serve clients."""
    registration, metadata = parts.registration, parts.metadata
    if metadata.is_leader and set(metadata.image.brokers) <= {parts.settings.node_id}:
        await registration.register_with(parts.controller)
    else:
        await registration.register()
        await registration.wait_until_caught_up()
    await parts.acls_loaded.wait()
    parts.follow_metadata()
    parts.logs.remove_strays({name: topic.topic_id for name, topic in metadata.image.topics.items()})
    await stack.enter_async_context(
        _running(
            parts.logs.run(),
            parts.groups.run(),
            parts.transactions.run(),
            parts.server.run(),
            parts.fetchers.run(),
            parts.isr_changes.run(),
        )
    )
    await registration.wait_until_unfenced()
    await stack.enter_async_context(_running(registration.run(), parts.watch_storage()))
    stack.callback(parts.server.close_to_clients)
    stack.push_async_callback(parts.hand_over)
    parts.server.start(parts.services)


def _client_quotas(metadata: MetadataQuorum, settings: BrokerSettings, clock: Clock) -> ClientQuotas:
    """The client quotas, which every kind of node enforces: they are in the metadata, and change while it runs."""
    quotas = ClientQuotas(
        clock,
        window=Window(settings.quota_window_num, settings.quota_window_size_seconds),
        controller_window=Window(settings.controller_quota_window_num, settings.controller_quota_window_size_seconds),
    )
    metadata.subscribe(lambda image, records: quotas.follow(image.carried, records))
    return quotas


def _clean_epoch(registrations: Sequence[BrokerRegistration], logs_on_disk: LogStore) -> int:
    """The broker epoch that a clean stop leaves behind: without a registration, that of the last clean stop."""
    epoch = max((registration.epoch for registration in registrations), default=-1)
    return epoch if epoch >= 0 else logs_on_disk.previous_broker_epoch


def _partition_count(image: MetadataImage, topic: str, default: int) -> int:
    """How many partitions an internal topic has, or will have once it is created."""
    found = image.topics.get(topic)
    return default if found is None else len(found.partitions)


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
