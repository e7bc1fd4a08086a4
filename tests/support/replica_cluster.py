"""Brokers without sockets that replicate partitions among themselves, and a controller that does what a test says."""

import asyncio
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from core_broker.cluster.controller.partition_changes import plan_alter_partition
from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.metadata import MetadataDraft, MetadataImage, PartitionImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.cluster.replication.fetchers import ReplicaFetchers
from core_broker.cluster.replication.isr_changes import IsrChanges
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import Services
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.handlers.session import Session
from core_broker.handlers.table import BY_KEY
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.peers.peers import Address, PeerError, Peers, response_type
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.frames import unpack_header
from core_broker.protocol.messages import alter_partition as wire
from core_broker.protocol.records import Record, build_batch
from core_broker.protocol.stored import metadata as stored
from core_broker.security.quotas import ClientQuotas
from core_broker.server.dispatch import dispatch
from core_broker.service.clock import Clock, ManualClock
from core_broker.settings import BrokerSettings
from tests.support.handler_world import as_bytes
from tests.support.wire import request_body

TOPIC = "orders"
TOPIC_ID = bytes(range(16))
_UNUSED = cast("Any", None)
"""Parts of a broker that replication does not use."""


class ReplicaBroker:
    """One broker: its logs, partitions and replication; it applies the metadata when a test says so."""

    def __init__(self, broker_id: int, path: Path, cluster: "ReplicaCluster") -> None:
        self.broker_id = broker_id
        self.path = path
        self.cluster = cluster
        self.settings = cluster.settings_of(broker_id)
        self.image = MetadataImage(cluster_id="cluster")
        self.applied = 0
        """How many changes of the cluster it has applied."""
        self.logs = LogStore([path], self.settings, cluster.clock)
        self.logs.load()
        metrics = BrokerMetrics()
        self.partitions = Partitions(
            local_id=broker_id, logs=self.logs, settings=self.settings, clock=cluster.clock, metrics=metrics
        )
        self.services = Services(
            settings=self.settings,
            clock=cluster.clock,
            metadata=cast("Any", self),
            controller=_UNUSED,
            controller_channel=_UNUSED,
            partitions=self.partitions,
            logs=self.logs,
            groups=_UNUSED,
            transactions=_UNUSED,
            transaction_verifier=_UNUSED,
            local_markers=_UNUSED,
            topic_creation=_UNUSED,
            schema_guard=_UNUSED,
            quotas=ClientQuotas(cluster.clock),
            fetch_sessions=FetchSessions(cluster.clock, slots_max=10),
            metrics=metrics,
            credentials=_UNUSED,
            tokens=_UNUSED,
            api_versions=(),
            check_stores=_UNUSED,
        )
        self.fetchers = ReplicaFetchers(
            self.partitions,
            local_id=broker_id,
            broker_epoch=self.epoch,
            image=lambda: self.image,
            peers=InMemoryPeers(broker_id, cluster),
            logs=self.logs,
            settings=self.settings,
            clock=cluster.clock,
        )
        self.isr_changes = IsrChanges(
            self.partitions,
            local_id=broker_id,
            broker_epoch=self.epoch,
            channel=InMemoryChannel(broker_id, cluster),
            settings=self.settings,
        )
        self._tasks: list[asyncio.Task[None]] = []

    def epoch(self) -> int:
        """The epoch of its registration, which it knows from the controller's response."""
        return self.cluster.image.brokers[self.broker_id].epoch

    def start(self) -> None:
        """Replicate in the background."""
        self._tasks = [
            asyncio.create_task(self.fetchers.run(), name=f"fetchers-{self.broker_id}"),
            asyncio.create_task(self.isr_changes.run(), name=f"isr-{self.broker_id}"),
        ]

    @property
    def is_running(self) -> bool:
        """Whether it replicates in the background."""
        return bool(self._tasks)

    async def stop(self) -> None:
        """Stop replicating; the logs stay open."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def apply_next(self) -> bool:
        """Apply the next change of the cluster's metadata; False if there is none."""
        if self.applied == len(self.cluster.changes):
            return False
        self.image, records = self.cluster.changes[self.applied]
        self.applied += 1
        self.partitions.apply(self.image, records)
        return True

    def apply_all(self) -> None:
        """Apply all changes of the cluster's metadata."""
        while self.apply_next():
            pass

    @property
    def partition(self) -> Partition:
        """Its replica of the only partition."""
        found = self.partitions.find(TOPIC, 0)
        assert found is not None
        return found

    def content(self) -> list[tuple[int, int, bytes]]:
        """Base offset, leader epoch and bytes of each batch in its log."""
        log = self.partition.log
        return [
            (header.base_offset, header.leader_epoch, bytes(batch))
            for header, batch in log.read_batches(log.start_offset, log.end_offset)
        ]

    async def handle(self, request: Message, version: int) -> Message:
        """Answer a request as the network would bring it."""
        frame = memoryview(bytearray(request_body(request, version, correlation_id=7)))
        session = Session(host="192.0.2.9", port=50000, listener_name="PLAINTEXT", local_host="192.0.2.1")
        answer = dispatch(frame, unpack_header(frame, 0), session, self.services)
        payload = as_bytes(await answer if isawaitable(answer) else answer)
        assert request.API_KEY is not None
        is_flexible = BY_KEY[request.API_KEY].has_flexible_response_header(version)
        return decode(response_type(type(request)), version, payload, 9 if is_flexible else 8)


class InMemoryPeers(Peers):
    """The network of one broker: calls the handlers of the others, unless the test has cut or delayed the line."""

    def __init__(self, broker_id: int, cluster: "ReplicaCluster") -> None:
        super().__init__(client_id=str(broker_id))
        self._broker_id = broker_id
        self._cluster = cluster

    @override
    async def call(
        self,
        address: Address,
        request: Message,
        *,
        timeout_seconds: float,
        purpose: str = "",
        version: int | None = None,
    ) -> Message:
        other = address.port
        assert version is not None
        self._cluster.versions[type(request)].add(version)
        await self._cluster.cross(self._broker_id, other)
        response = await self._cluster.brokers[other].handle(request, version)
        await self._cluster.cross(other, self._broker_id)
        return response


class InMemoryChannel(ControllerChannel):
    """The way to the controller of the test."""

    def __init__(self, broker_id: int, cluster: "ReplicaCluster") -> None:
        self._broker_id = broker_id
        self._cluster = cluster

    @override
    async def call(self, request: Message, *, timeout_seconds: float = 30.0) -> Message:
        assert isinstance(request, wire.AlterPartitionRequest)
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._cluster.cross(self._broker_id, 0)
                response = self._cluster.alter_partition(request)
                await self._cluster.cross(0, self._broker_id)
        except (PeerError, TimeoutError) as error:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        return response


class ReplicaCluster:
    """Some brokers with the partition `orders-0`, its controller, and the lines between them.

    Changes reach the brokers at once unless `is_manual`, which leaves it to the test when each applies the next one.
    """

    def __init__(
        self,
        path: Path,
        *,
        brokers: Sequence[int] = (1, 2, 3),
        clock: Clock | None = None,
        racks: dict[int, str] | None = None,
        **settings: Any,
    ) -> None:
        self.clock: Clock = clock or ManualClock(1_700_000_000_000)
        self.image = MetadataImage(cluster_id="cluster")
        self.changes: list[tuple[MetadataImage, Sequence[Message]]] = []
        self.is_manual = False
        self.cut: set[int] = set()
        """Brokers whose lines are cut (0 is the controller)."""
        self.silent: set[int] = set()
        """Brokers that receive nothing, without anybody noticing."""
        self.messages: Counter[tuple[int, int]] = Counter()
        """How many were sent, by sender and receiver, whether they arrived or not."""
        self.versions: defaultdict[type[Message], set[int]] = defaultdict(set)
        """The versions in which followers have sent each kind of request."""
        self.gates: list[asyncio.Future[bool]] | None = None
        """If a list: every message waits here until the test lets it pass (True) or loses it (False)."""
        self._settings: dict[str, Any] = settings
        self._path = path
        self._generation = 0
        self.brokers: dict[int, ReplicaBroker] = {}
        for broker_id in brokers:
            self.register(broker_id, rack=(racks or {}).get(broker_id))
            self.brokers[broker_id] = ReplicaBroker(broker_id, path / f"broker-{broker_id}", self)
        self._deliver()

    def settings_of(self, broker_id: int) -> BrokerSettings:
        """The settings of one broker."""
        return BrokerSettings(node_id=broker_id, **self._settings)

    # -- the controller --

    def commit(self, *records: Message) -> None:
        """Commit records to the metadata log."""
        draft = MetadataDraft(self.image)
        draft.replay(records)
        self.image = draft.finish(offset=self.image.offset + len(records), epoch=1)
        self.changes.append((self.image, records))
        if not self.is_manual:
            self._deliver()

    def _deliver(self) -> None:
        for broker in self.brokers.values():
            broker.apply_all()

    def register(self, broker_id: int, *, rack: str | None = None, fenced: bool = False) -> None:
        """Register a broker, or register it again: that gives it a new epoch."""
        endpoint = stored.BrokerEndpoint(name="PLAINTEXT", host=f"broker-{broker_id}", port=broker_id)
        record = stored.RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=self.image.offset + 100,
            end_points=[endpoint],
            rack=rack,
            fenced=fenced,
        )
        self.commit(record)

    def fence(self, broker_id: int, *, fenced: bool = True) -> None:
        """Fence a broker, or unfence it."""
        epoch = self.image.brokers[broker_id].epoch
        self.commit(stored.BrokerRegistrationChangeRecord(broker_id, epoch, 1 if fenced else -1))

    def create_topic(self, replicas: Sequence[int] = (1, 2, 3), *, leader: int = 1, **configs: str) -> None:
        """Create the topic with all replicas in sync."""
        self.commit(
            stored.TopicRecord(TOPIC, TOPIC_ID),
            *(stored.ConfigRecord(2, TOPIC, name.replace("_", "."), value) for name, value in configs.items()),
            stored.PartitionRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                replicas=list(replicas),
                isr=list(replicas),
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
            ),
        )

    @property
    def description(self) -> PartitionImage:
        """The partition as the controller knows it."""
        return self.image.topics[TOPIC].partitions[0]

    def change(
        self,
        *,
        leader: int | None = None,
        isr: Sequence[int] | None = None,
        replicas: Sequence[int] | None = None,
        recovery: int = -1,
    ) -> None:
        """Change the partition; naming a leader begins a new leader epoch."""
        self.commit(
            stored.PartitionChangeRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                leader=-2 if leader is None else leader,
                isr=None if isr is None else list(isr),
                replicas=None if replicas is None else list(replicas),
                leader_recovery_state=recovery,
            )
        )

    def alter_partition(self, request: wire.AlterPartitionRequest) -> Message:
        """Decide about proposals, as the controller does."""
        try:
            records, response = plan_alter_partition(request, self.image, self.settings_of(0))
        except BrokerError as error:
            return wire.AlterPartitionResponse(error_code=error.code)
        if records:
            self.commit(*records)
        return response

    # -- the network --

    async def cross(self, sender: int, receiver: int) -> None:
        """Bring a message from one to another, or lose it."""
        self.messages[sender, receiver] += 1
        await asyncio.sleep(0)
        if receiver in self.silent:
            await asyncio.Event().wait()
        if self.gates is not None:
            gate: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self.gates.append(gate)
            if not await gate:
                raise PeerError("lost")
        if sender in self.cut or receiver in self.cut:
            raise PeerError("cut")

    # -- brokers --

    def __getitem__(self, broker_id: int) -> ReplicaBroker:
        return self.brokers[broker_id]

    @property
    def leader(self) -> ReplicaBroker:
        """The broker that leads the partition."""
        return self.brokers[self.description.leader_id]

    def start(self) -> None:
        """Let every broker replicate in the background."""
        for broker in self.brokers.values():
            broker.start()

    async def crash(self, broker_id: int) -> None:
        """End a broker without closing its logs, and start it again with what it had written; it is fenced."""
        old = self.brokers[broker_id]
        was_running = old.is_running
        await old.stop()
        for partition in old.partitions:
            partition.retire()  # its clients lose their connections
        self._generation += 1
        path = self._path / f"broker-{broker_id}-{self._generation}"
        shutil.copytree(old.path, path)
        old.logs.close()
        rack = self.image.brokers[broker_id].rack
        self.register(broker_id, rack=rack, fenced=True)
        broker = self.brokers[broker_id] = ReplicaBroker(broker_id, path, self)
        broker.applied = len(self.changes)
        broker.image = self.image
        broker.partitions.synchronise(self.image)
        if was_running:
            broker.start()

    async def close(self) -> None:
        """Stop all brokers and close their logs."""
        for broker in self.brokers.values():
            await broker.stop()
            broker.logs.close()


def append(broker: ReplicaBroker, *values: bytes, acks_all: bool = False) -> int:
    """Append one record for each value as leader; returns the last offset."""
    batch = build_batch([Record(timestamp=1_700_000_000_000, value=value) for value in values])
    return broker.partition.append(batch, acks_all=acks_all).last_offset


async def eventually(is_true: Callable[[], bool], *, rounds: int = 4000) -> None:
    """Let the brokers work until something is true."""
    for number in range(rounds):
        if is_true():
            return
        await asyncio.sleep(0 if number < 200 else 0.005)
    raise AssertionError("it never became true")
