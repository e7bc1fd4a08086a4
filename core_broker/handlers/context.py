"""What a handler gets in addition to the request: the parts of the broker, and the client."""

from collections.abc import Awaitable, Callable

import msgspec

from core_broker.cluster.controller.controller import Controller
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.effective_settings import broker_settings
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.topic_creation import TopicCreation
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.handlers.session import Session
from core_broker.handlers.usage import RequestUsage
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.schema_guard.guard import SchemaGuard
from core_broker.security.audit import AuditLog
from core_broker.security.authorizer import Authorizer
from core_broker.security.credentials import ScramCredentials
from core_broker.security.quotas import UNLIMITED, ClientQuotas, MutationQuota
from core_broker.security.tokens import TokenStore
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.marker_delivery import LocalMarkers
from core_broker.transactions.verification import TransactionVerifier


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a running broker that handlers use."""

    settings: BrokerSettings
    """As the broker was started; those that may change while it runs are read from `current_settings`."""
    clock: Clock
    metadata: MetadataQuorum
    controller: Controller
    controller_channel: ControllerChannel
    partitions: Partitions
    logs: LogStore
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transaction_verifier: TransactionVerifier
    local_markers: LocalMarkers
    topic_creation: TopicCreation
    schema_guard: SchemaGuard
    fetch_sessions: FetchSessions
    quotas: ClientQuotas
    metrics: BrokerMetrics
    credentials: ScramCredentials
    tokens: TokenStore
    api_versions: tuple[tuple[int, int, int], ...]
    """Key, lowest and highest version of each API of brokers."""
    controller_api_versions: tuple[tuple[int, int, int], ...] = ()
    """The same of controller listeners."""
    check_stores: Callable[[BrokerSettings], Awaitable[None]]
    """Raises BrokerError if the listeners of this node could not use the key stores and trust stores of settings."""
    authorizer: Authorizer | None = None
    """Without one everything is allowed."""
    audit: AuditLog | None = None
    """Who changed what; without one it is not written down."""

    @property
    def current_settings(self) -> BrokerSettings:
        """The settings of this broker including dynamic changes."""
        return broker_settings(self.metadata.image, self.settings)


class RequestContext(msgspec.Struct, gc=False):
    """A request without its content: its API, version and client."""

    services: Services
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    session: Session
    authorizer: Authorizer | None
    """Whom to ask what the client may do; None if it may do everything."""
    usage: RequestUsage | None = None
    """What it uses of its client's quotas; None while there are none."""

    def mutations(self, *, is_strict: bool) -> MutationQuota:
        """What the request may change in the metadata; strict for versions that know the error of this quota."""
        return UNLIMITED if self.usage is None else self.usage.mutations(is_strict=is_strict)

    @property
    def client_host(self) -> str:
        """The address of the client."""
        return self.session.host

    @property
    def listener_name(self) -> str:
        """The listener that the client connected to."""
        return self.session.listener_name
