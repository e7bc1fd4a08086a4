"""What a handler gets in addition to the request: the parts of the broker, and the client."""

import msgspec

from core_broker.cluster.controller import Controller
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.schema_guard.guard import SchemaGuard
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings
from core_broker.transactions.coordinator import TransactionCoordinator


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a running broker that handlers use."""

    settings: BrokerSettings
    """As the broker was started; those that may change while it runs are read from `controller.settings`."""
    clock: Clock
    metadata: MetadataQuorum
    controller: Controller
    partitions: Partitions
    logs: LogStore
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    schema_guard: SchemaGuard
    fetch_sessions: FetchSessions
    metrics: BrokerMetrics
    api_versions: tuple[tuple[int, int, int], ...]
    """Key, lowest and highest version of each API."""


class RequestContext(msgspec.Struct, gc=False):
    """The client of a request, its listener, and the version."""

    services: Services
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    listener_name: str
    local_host: str
    """The address the client connected to; advertised to it if no other is configured."""
    principal: str = "User:ANONYMOUS"
