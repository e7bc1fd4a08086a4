"""Several brokers without sockets: real logs, partitions and coordinators, a metadata log and a network in memory.

Replication is done by `elect`: the new leader first gets what its predecessor has written. A broker that is cut off
keeps the metadata it has, as one that does not know yet that it was replaced.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.partitions import Partitions
from core_broker.groups.coordinator import GroupCoordinator
from core_broker.handlers.context import RequestContext, Services
from core_broker.handlers.session import Session
from core_broker.handlers.table import BY_KEY
from core_broker.log.store import LogStore
from core_broker.metrics import BrokerMetrics
from core_broker.peers.peers import Address, PeerError
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.records import Record, build_batch, read_records
from core_broker.protocol.stored import metadata as stored
from core_broker.security.quotas import ClientQuotas
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from core_broker.transactions.broker_calls import BrokerCalls
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.marker_delivery import LocalMarkers, MarkerDelivery
from core_broker.transactions.producer_ids import ProducerIds
from core_broker.transactions.verification import TransactionVerifier

LISTENER = "INTERNAL"
_SESSION = Session(host="", listener_name=LISTENER, local_host="")
_NOT_HERE = cast("Any", None)


class KnownMetadata:
    """What a broker has applied of the metadata log."""

    def __init__(self) -> None:
        self.image = MetadataImage(cluster_id="c")
        self._listeners: list[Callable[[MetadataImage, Sequence[Message]], None]] = []

    def subscribe(self, listener: Callable[[MetadataImage, Sequence[Message]], None]) -> None:
        """Call `listener` after each batch."""
        self._listeners.append(listener)

    def apply(self, records: Sequence[Message]) -> None:
        """Apply committed records."""
        draft = MetadataDraft(self.image)
        draft.replay(records)
        self.image = draft.finish(offset=self.image.offset + len(records), epoch=1)
        for listener in self._listeners:
            listener(self.image, records)


class ClusterBroker:
    """One broker of the cluster."""

    def __init__(self, broker_id: int, path: Path, cluster: "CoordinatorCluster") -> None:
        self.broker_id = broker_id
        self.settings = BrokerSettings(node_id=broker_id, group_initial_rebalance_delay_ms=0)
        clock = cluster.clock
        self.metadata = KnownMetadata()
        self.logs = LogStore([path], self.settings, clock)
        self.logs.load()
        self.partitions = Partitions(
            local_id=broker_id, logs=self.logs, settings=self.settings, clock=clock, metrics=BrokerMetrics()
        )
        self.metadata.subscribe(self.partitions.apply)
        self.groups = GroupCoordinator(
            settings=self.settings,
            clock=clock,
            partitions=self.partitions,
            partition_count=lambda: 1,
            topics=lambda: self.metadata.image.topics,
            group_overrides=lambda _group_id: {},
        )
        calls = BrokerCalls(cluster.network_of(broker_id), image=lambda: self.metadata.image, listener_name=LISTENER)
        local_markers = LocalMarkers(self.partitions, self.groups.complete_transaction)
        self.markers = MarkerDelivery(local_markers, calls, local_id=broker_id, image=lambda: self.metadata.image)
        self.transactions = TransactionCoordinator(
            settings=self.settings,
            clock=clock,
            partitions=self.partitions,
            partition_count=lambda: 1,
            producer_ids=ProducerIds(cluster.allocate_producer_ids),
            write_marker=self.markers.write,
            completion_wait_ms=0,
        )
        self.verifier = TransactionVerifier(
            self.transactions, calls, local_id=broker_id, image=lambda: self.metadata.image
        )
        self.partitions.on_leadership.append(self._take_over)
        self.metadata.subscribe(lambda _image, _records: self._resign())
        self.services = Services(
            settings=self.settings,
            clock=clock,
            metadata=cast("Any", self.metadata),
            controller=_NOT_HERE,
            controller_channel=_NOT_HERE,
            partitions=self.partitions,
            logs=self.logs,
            groups=self.groups,
            transactions=self.transactions,
            transaction_verifier=self.verifier,
            local_markers=local_markers,
            topic_creation=_NOT_HERE,
            schema_guard=_NOT_HERE,
            quotas=ClientQuotas(clock),
            fetch_sessions=_NOT_HERE,
            metrics=_NOT_HERE,
            credentials=_NOT_HERE,
            tokens=_NOT_HERE,
            api_versions=(),
            check_stores=_NOT_HERE,
        )

    def _take_over(self, partition: Partition) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.groups.become_leader(partition.index, partition.leader_epoch)
        elif partition.topic == TRANSACTIONS_TOPIC:
            self.transactions.become_leader(partition.index, partition.leader_epoch)

    def _resign(self) -> None:
        for topic, coordinator in ((OFFSETS_TOPIC, self.groups), (TRANSACTIONS_TOPIC, self.transactions)):
            partition = self.partitions.find(topic, 0)
            if partition is not None and not partition.is_leader:
                coordinator.resign(0)

    async def call(self, request: Message, version: int) -> Message:
        """Answer a request, which came as bytes."""
        assert request.API_KEY is not None
        api = BY_KEY[request.API_KEY]
        assert api.handler is not None
        context = RequestContext(self.services, api.key, version, 1, None, _SESSION, self.services.authorizer)
        received = decode(api.request, version, encode(request, version))
        response = await cast("Any", api.handler(received, context))
        return decode(api.response, version, encode(response, version))

    def values(self, topic: str, index: int = 0) -> list[bytes | None]:
        """What read-committed consumers of a partition see at most: no control records, nothing aborted."""
        partition = self.partitions.get(topic, index)
        assert partition.last_stable_offset == partition.high_watermark
        aborted = {producer for producer, _ in partition.log.aborted_transactions(0, partition.log.end_offset)}
        return [
            record.value
            for header, buffer in partition.log.read_batches(0, partition.log.end_offset)
            if not header.is_control and header.producer_id not in aborted
            for record in read_records(buffer, header)
        ]


class CoordinatorCluster:
    """The brokers, the metadata log and the network."""

    def __init__(self, path: Path, broker_ids: Iterable[int]) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.cut_off: set[int] = set()
        """Brokers that neither send nor receive."""
        self.requests: list[tuple[int, int, str]] = []
        """Sender, receiver and purpose of each request."""
        self.version: int | None = None
        self._next_producer_id = 1000
        self._topic_ids: dict[str, bytes] = {}
        self.brokers = {broker_id: ClusterBroker(broker_id, path / str(broker_id), self) for broker_id in broker_ids}
        self.commit(*(self._registration(broker_id) for broker_id in self.brokers))

    def __getitem__(self, broker_id: int) -> ClusterBroker:
        return self.brokers[broker_id]

    async def allocate_producer_ids(self) -> range:
        """A block of ids."""
        self._next_producer_id += 1000
        return range(self._next_producer_id - 1000, self._next_producer_id)

    # --- metadata ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _registration(broker_id: int) -> Message:
        endpoint = stored.BrokerEndpoint(name=LISTENER, host="10.0.0.1", port=broker_id)
        return stored.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=1, end_points=[endpoint], fenced=False)

    def commit(self, *records: Message) -> None:
        """Commit metadata; brokers that are cut off do not learn of it."""
        for broker in self.brokers.values():
            if broker.broker_id not in self.cut_off:
                broker.metadata.apply(records)

    def create(self, name: str, *leaders: int) -> None:
        """Create a topic with one partition for each leader, all with replicas on every broker."""
        self._topic_ids[name] = topic_id = name.encode().ljust(16, b"-")[:16]
        self.commit(
            stored.TopicRecord(name=name, topic_id=topic_id),
            *(
                stored.PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=list(self.brokers),
                    isr=[leader],
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index, leader in enumerate(leaders)
            ),
        )

    def elect(self, topic: str, leader_id: int, index: int = 0, *, former: int) -> None:
        """Make another broker the leader, with everything that the former one has written so far."""
        source = self.brokers[former].partitions.find(topic, index)
        target = self.brokers[leader_id].partitions.find(topic, index)
        assert source is not None
        assert target is not None
        for _, batch in source.log.read_batches(target.log.end_offset, source.log.end_offset):
            target.log.append_as_follower(bytearray(batch))
        self.commit(
            stored.PartitionChangeRecord(
                partition_id=index, topic_id=self._topic_ids[topic], leader=leader_id, isr=[leader_id]
            )
        )

    # --- network -----------------------------------------------------------------------------------------------------

    def network_of(self, sender: int) -> Any:
        """`Peers.call` of a broker."""

        async def call(address: Address, request: Message, *, timeout_seconds: float, purpose: str = "") -> Message:
            await asyncio.sleep(0)
            receiver = address.port
            self.requests.append((sender, receiver, purpose))
            if {sender, receiver} & self.cut_off:
                raise PeerError(f"cannot connect to {address}")
            response = await self.brokers[receiver].call(request, self.version or request.VERSIONS[1])
            if {sender, receiver} & self.cut_off:
                raise PeerError(f"lost the connection to {address}")
            return response

        return call

    # --- producers ---------------------------------------------------------------------------------------------------

    def produce(self, topic: str, index: int, value: bytes, producer: tuple[int, int], sequence: int = 0) -> None:
        """Append a transactional record at the leader."""
        (image,) = [broker.metadata.image for broker in self.brokers.values() if broker.broker_id not in self.cut_off][
            :1
        ]
        leader = self.brokers[image.topics[topic].partitions[index].leader_id]
        batch = build_batch(
            [Record(timestamp=self.clock.now_ms(), value=value)],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        leader.partitions.get(topic, index).append(batch, acks_all=True)


@asynccontextmanager
async def coordinator_cluster(path: Path, *broker_ids: int) -> AsyncIterator[CoordinatorCluster]:
    """A cluster whose coordinators run."""
    cluster = CoordinatorCluster(path, broker_ids)
    async with AsyncExitStack() as stack:
        for broker in cluster.brokers.values():
            stack.callback(broker.logs.close)
        tasks = [
            asyncio.ensure_future(coordinator.run())
            for broker in cluster.brokers.values()
            for coordinator in (broker.groups, broker.transactions)
        ]
        await asyncio.sleep(0)
        try:
            yield cluster
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something holds; a test that never gets there is stopped by pytest's time-out."""
    while not condition():  # noqa: ASYNC110 - conditions are about many objects, none of which has an event
        await asyncio.sleep(0.005)
