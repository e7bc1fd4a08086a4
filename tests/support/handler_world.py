"""A broker without sockets: real logs, metadata and partitions behind the real dispatch."""

from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from core_broker.cluster.controller.configs import ConfigChange
from core_broker.cluster.controller.controller import Controller
from core_broker.cluster.controller.topics import NewTopic
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.effective_settings import EVERY_BROKER
from core_broker.cluster.endpoints import AdvertisedEndpoints
from core_broker.cluster.metadata import ResourceType
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.registration_request import registration_request
from core_broker.cluster.topic_creation import TopicCreation
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.handlers.api import Answer
from core_broker.handlers.context import Services
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.handlers.session import Session
from core_broker.handlers.table import BROKER_BY_KEY, BY_KEY, CONTROLLER_APIS, advertised_versions
from core_broker.log.segment_chain import LogSlice
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.peers.peers import Peers
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import unpack_header
from core_broker.protocol.messages import alter_client_quotas
from core_broker.protocol.records import Record, build_batch
from core_broker.protocol.stored import metadata as stored
from core_broker.schema_guard.guard import SchemaGuard
from core_broker.security.authorizer import Authorizer, Denial, authorizer_of
from core_broker.security.credentials import ScramCredentials
from core_broker.security.operations import Operation
from core_broker.security.operations import ResourceType as ResourceTypeOfAcl
from core_broker.security.quotas import ClientQuotas
from core_broker.security.tokens import TokenStore
from core_broker.server.dispatch import call_handler, dispatch
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, Listener
from tests.support.wire import request_body

R = TypeVar("R", bound=Message)
_NOT_HERE = cast("Any", None)
"""The coordinator of transactions: most handlers under test do not use it."""
OFFSETS_PARTITIONS = 2
BROKEN_STORE = "broken.pem"
"""The one store that listeners cannot use."""


def as_bytes(answer: Answer) -> bytearray:
    """An answer as a client reads it, with the parts of files in their places."""
    assert answer is not None
    if isinstance(answer, bytearray):
        return answer
    parts = (c.file.read(c.position, c.length) if isinstance(c, LogSlice) else bytes(c) for c in answer)
    return bytearray(b"".join(parts))


class HandlerWorld:
    """One broker, registered under two listeners; `call` sends it a request."""

    def __init__(self, path: Path, settings: BrokerSettings, clock: ManualClock, *other_log_dirs: Path) -> None:
        self.settings = settings
        self.clock = clock
        self.logs = LogStore([path, *other_log_dirs], settings, clock)
        self.logs.load()
        self.quorum = MetadataQuorum(path, cluster_id=self.logs.cluster_id or "", settings=settings, clock=clock)
        self.quorum.start()
        metrics = BrokerMetrics()
        self.partitions = Partitions(
            local_id=settings.node_id, logs=self.logs, settings=settings, clock=clock, metrics=metrics
        )
        self.controller = Controller(self.quorum, settings, clock, prepare=self.partitions.prepare)
        self.partitions.synchronise(self.quorum.image)
        self.quorum.subscribe(self.partitions.apply)
        self.quotas = ClientQuotas(clock)
        self.quorum.subscribe(lambda image, records: self.quotas.follow(image.carried, records))
        self.authorizer = authorizer = authorizer_of(settings)
        if authorizer is not None:
            self.quorum.subscribe(lambda _, records: authorizer.apply(records))
            authorizer.load(self.quorum.image.carried.values())
        self.peers = Peers(client_id="test")
        channel = ControllerChannel(self.peers, self.quorum, local=self.call_local)
        self.services = Services(
            settings=settings,
            clock=clock,
            metadata=self.quorum,
            controller=self.controller,
            controller_channel=channel,
            partitions=self.partitions,
            logs=self.logs,
            groups=GroupCoordinator(
                settings=settings,
                clock=clock,
                partitions=self.partitions,
                partition_count=lambda: OFFSETS_PARTITIONS,
                topics=lambda: self.quorum.image.topics,
                group_overrides=lambda _group_id: {},
            ),
            transactions=_NOT_HERE,
            transaction_verifier=_NOT_HERE,
            local_markers=_NOT_HERE,
            topic_creation=TopicCreation(channel, self.quorum, settings=lambda: self.controller.settings),
            schema_guard=SchemaGuard(settings, clock=clock, metrics=metrics),
            quotas=self.quotas,
            fetch_sessions=FetchSessions(clock, slots_max=10),
            metrics=metrics,
            credentials=ScramCredentials(lambda: self.quorum.image.carried),
            tokens=TokenStore(
                lambda: self.quorum.image.carried, secret_key=settings.delegation_token_secret_key, clock=clock
            ),
            api_versions=advertised_versions(),
            controller_api_versions=advertised_versions(CONTROLLER_APIS),
            authorizer=self.authorizer,
            check_stores=self._check_stores,
        )

    async def _check_stores(self, settings: BrokerSettings) -> None:
        if BROKEN_STORE in dict(settings.listener_overrides).values():
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"cannot read {BROKEN_STORE}")

    async def register(self) -> None:
        """Announce the broker."""
        listeners = [Listener("PLAINTEXT", "", 9092), Listener("INTERNAL", "10.0.0.7", 9095)]
        request = registration_request(
            self.settings,
            AdvertisedEndpoints.of(listeners, self.settings),
            cluster_id=self.quorum.cluster_id,
            incarnation_id=b"i" * 16,
            log_dirs=[directory.directory_id for directory in self.logs.directories],
        )
        await self.controller.register_broker(request, unfence=True)

    async def call_local(self, request: Message) -> Message:
        """Answer a request of the broker itself."""
        return await call_handler(request, self.services)

    def enforce(self, *rules: tuple[Operation, ResourceTypeOfAcl, str], principal: str = "User:*") -> list[Denial]:
        """From now on, a client may do these things and nothing else; the list fills with refusals that are logged."""
        denials: list[Denial] = []
        authorizer = Authorizer(on_denial=denials.append)
        authorizer.load(
            stored.AccessControlEntryRecord(bytes([number]) * 16, kind, name, 3, principal, "*", operation, 3)
            for number, (operation, kind, name) in enumerate(rules)
        )
        self.services = msgspec.structs.replace(self.services, authorizer=authorizer)
        return denials

    async def close(self) -> None:
        """Close the logs."""
        await self.peers.close()
        await self.services.schema_guard.close()
        await self.quorum.close()
        self.logs.close()

    async def call(
        self,
        request: Message,
        response: type[R],
        version: int,
        *,
        listener: str = "PLAINTEXT",
        local_host: str = "192.0.2.1",
        session: Session | None = None,
    ) -> R:
        """Send a request through dispatch, as bytes, and read the answer."""
        answer = as_bytes(await self.send(request, version, listener=listener, local_host=local_host, session=session))
        assert request.API_KEY is not None
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
        assert int.from_bytes(answer[4:8], "big") == 77
        is_flexible = BY_KEY[request.API_KEY].has_flexible_response_header(version)
        return decode(response, version, answer, 9 if is_flexible else 8)

    async def send(
        self,
        request: Message,
        version: int,
        *,
        listener: str = "PLAINTEXT",
        local_host: str = "192.0.2.1",
        session: Session | None = None,
    ) -> Answer:
        """Send a request through dispatch, as bytes; the answer as it would go out. A session may be of one's own."""
        is_controller = request.API_KEY not in BROKER_BY_KEY
        session = session or Session(
            host="192.0.2.9",
            port=50000,
            listener_name=listener,
            local_host=local_host,
            is_controller_listener=is_controller,
        )
        frame = memoryview(bytearray(request_body(request, version, correlation_id=77)))
        answer = dispatch(frame, unpack_header(frame, 0), session, self.services)
        return await answer if isawaitable(answer) else answer

    async def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic; returns its id."""
        topic = NewTopic(
            name=name,
            partition_count=partitions,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        (result,) = await self.controller.create_topics([topic])
        assert not isinstance(result, BrokerError), result
        return result.topic_id

    async def set_quota(self, key: str, value: float | None, **entity: str | None) -> None:
        """Set a client quota, or remove it; `client_id=None` is the default of client ids."""
        parts = [alter_client_quotas.EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
        change = alter_client_quotas.OpData(key, value or 0.0, value is None)
        (result,) = await self.controller.alter_client_quotas([alter_client_quotas.EntryData(parts, [change])])
        assert result.error_code == 0, result.error_message

    async def configure_broker(self, key: str, value: str) -> None:
        """Change a setting of all brokers while they run."""
        resource = (ResourceType.BROKER, EVERY_BROKER)
        (error,) = await self.controller.alter_configs([(resource, [ConfigChange(key=key, value=value)])])
        assert error is None, error

    def partition(self, name: str, index: int = 0) -> Partition:
        """A partition of a topic."""
        return self.partitions.get(name, index)

    def append(self, name: str, *timestamps: int) -> None:
        """Append a batch of one record for each timestamp to partition 0."""
        records = [Record(timestamp=timestamp, value=b"v") for timestamp in timestamps]
        self.partition(name).append(build_batch(records), acks_all=False)
