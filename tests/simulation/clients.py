"""Clients of the simulated cluster: small state machines that speak the protocol, and remember the responses."""

import asyncio
import random
from typing import TYPE_CHECKING, Final

from core_broker.errors import ErrorCode
from core_broker.peers.peers import Address, PeerError
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    alter_partition_reassignments,
    create_topics,
    delete_topics,
    elect_leaders,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    metadata,
    produce,
    remove_raft_voter,
)
from core_broker.protocol.records import Record, build_batch, parse_batches
from core_broker.raft.voters import ReplicaKey
from tests.simulation.network import SimulatedPeers
from tests.simulation.virtual_loop import Life

if TYPE_CHECKING:
    from tests.simulation.cluster import World

Key = tuple[bytes, int]
"""Topic id and partition."""

ACKS_ALL: Final = -1
ACKS_LEADER: Final = 1
TEMPORARY_TOPIC: Final = "temporary"
"""Created and deleted while producers write to it."""

_LOST: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)


class Client:
    """A client with connections of its own, and what it knows about the cluster."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.number = number
        self.rng = random.Random(world.rng.getrandbits(64))
        self.life = Life(f"client-{number}")
        self.peers = SimulatedPeers(world.network, number, self.life)
        self.brokers: dict[int, Address] = {}
        self.leaders: dict[tuple[str, int], int] = {}
        self.epochs: dict[tuple[str, int], int] = {}
        self.replicas: dict[tuple[str, int], list[int]] = {}
        self.topic_ids: dict[str, bytes] = {}

    async def call(self, address: Address, request: Message, *, timeout_seconds: float = 3.0) -> Message:
        """Send a request; raises PeerError."""
        return await self.peers.call(address, request, timeout_seconds=timeout_seconds)

    def any_broker(self) -> Address:
        """One of the brokers of the settings."""
        return self.world.address_of(self.rng.choice(list(self.world.nodes)))

    async def refresh(self) -> None:
        """Ask any broker who leads what; failures leave everything as it was."""
        request = metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        try:
            response = await self.call(self.any_broker(), request, timeout_seconds=1.0)
        except PeerError:
            await self.pause(0.05)
            return
        assert isinstance(response, metadata.MetadataResponse)
        self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            name = topic.name or ""
            is_known = self.topic_ids.get(name) == topic.topic_id
            self.topic_ids[name] = topic.topic_id
            for partition in topic.partitions:
                key = (name, partition.partition_index)
                if is_known and partition.leader_epoch < self.epochs.get(key, -1):
                    continue  # that broker knows less than another one (KIP-320)
                self.epochs[key] = partition.leader_epoch
                self.leaders[key] = partition.leader_id
                self.replicas[key] = partition.replica_nodes
        for key in [key for key in self.leaders if key[0] not in {topic.name for topic in response.topics}]:
            del self.leaders[key]

    async def produce(
        self, key: tuple[str, int], batch: bytes, *, acks: int, transactional_id: str | None = None
    ) -> tuple[ErrorCode, int]:
        """Send a batch to the leader; returns its offset, or an error."""
        topic, index = key
        address = self.brokers.get(self.leaders.get(key, -1))
        if address is None:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        data = produce.TopicProduceData(
            name=topic, topic_id=self.topic_ids[topic], partition_data=[produce.PartitionProduceData(index, batch)]
        )
        request = produce.ProduceRequest(
            transactional_id=transactional_id, acks=acks, timeout_ms=2000, topic_data=[data]
        )
        try:
            response = await self.call(address, request)
        except PeerError:
            return ErrorCode.NETWORK_EXCEPTION, -1
        assert isinstance(response, produce.ProduceResponse)
        result = response.responses[0].partition_responses[0]
        return ErrorCode(result.error_code), result.base_offset

    async def pause(self, seconds: float) -> None:
        """Wait for about as long."""
        await asyncio.sleep(self.rng.expovariate(1 / seconds))


class Producer(Client):
    """Sends numbered records to one partition, one batch at a time, each until it is acknowledged."""

    def __init__(self, world: "World", number: int, topic: str, index: int, *, acks: int, is_idempotent: bool) -> None:
        super().__init__(world, number)
        self.key = (topic, index)
        self.acks = acks
        self.is_idempotent = is_idempotent
        self.producer_id, self.epoch, self.sequence = -1, -1, 0
        self.sent = 0

    async def run(self) -> None:
        """Produce for as long as the world wants load."""
        await self.refresh()
        while self.world.has_load:
            if self.is_idempotent and self.producer_id < 0:
                await self._begin()
                continue
            values = [f"{self.number}:{self.sent + n}".encode() for n in range(self.rng.choice([1, 1, 3, 10]))]
            if await self._send(values):
                self.sent += len(values)
            await self.pause(self.world.think_seconds)

    async def _begin(self) -> None:
        request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        try:
            response = await self.call(self.any_broker(), request)
        except PeerError:
            await self.pause(0.1)
            return
        assert isinstance(response, init_producer_id.InitProducerIdResponse)
        if response.error_code:
            await self.pause(0.1)
            return
        self.producer_id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0
        if self.world.producer_ids.setdefault(self.producer_id, self.number) != self.number:
            self.world.fail(f"I10: producer id {self.producer_id} was given to two producers")

    async def _send(self, values: list[bytes]) -> bool:
        """Send a batch until it is acknowledged; False if the producer has to begin anew."""
        now_ms = 1_700_000_000_000 + int(self.world.loop.time() * 1000)
        batch = build_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if self.is_idempotent else -1,
        )
        is_retry = False
        while not self.world.is_over:
            topic_id = self.topic_ids.get(self.key[0], b"")
            error, offset = await self._try(bytes(batch))
            if error is ErrorCode.NONE:
                self._on_acknowledged(topic_id, offset, values)
                self.sequence += len(values)
                return True
            if error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                self.sequence += len(values)
                return True
            if error in _LOST:
                if self.acks == ACKS_ALL and self.is_idempotent:
                    self.world.fail(f"S4: producer {self.number} got {error.name} although nothing of it may be lost")
                self.producer_id = -1
                return False
            is_retry = True
            await self.pause(0.05 if self.key in self.leaders else 0.5)
            await self.refresh()
            if not self.is_idempotent:
                return True  # whether it was appended is unknown
        return is_retry

    async def _try(self, batch: bytes) -> tuple[ErrorCode, int]:
        return await self.produce(self.key, batch, acks=self.acks)

    def _on_acknowledged(self, topic_id: bytes, offset: int, values: list[bytes]) -> None:
        self.world.count("acknowledged", len(values))
        if self.acks == ACKS_ALL:
            self.world.check_acknowledged((topic_id, self.key[1]), offset, values)


class Consumer(Client):
    """Reads every partition from its start, from leaders and sometimes from followers."""

    def __init__(self, world: "World", number: int, *, is_read_committed: bool) -> None:
        super().__init__(world, number)
        self.is_read_committed = is_read_committed
        self.positions: dict[Key, int] = {}
        self._is_refreshed = False

    async def run(self) -> None:
        """Read until the world ends."""
        while not self.world.is_over:
            if not self._is_refreshed or self.rng.random() < 0.1:
                self._is_refreshed = True
                await self.refresh()
            wanted: dict[int, list[tuple[str, int]]] = {}
            for key, leader in self.leaders.items():
                is_nearby = self.rng.random() < 0.3 and self.replicas[key]
                wanted.setdefault(self.rng.choice(self.replicas[key]) if is_nearby else leader, []).append(key)
            for source, keys in wanted.items():
                await self._read(source, keys)
            await self.pause(0.3)

    async def _read(self, source: int, keys: list[tuple[str, int]]) -> None:
        address = self.brokers.get(source)
        if address is None:
            self._is_refreshed = False
            return
        topics: dict[str, fetch.FetchTopic] = {}
        for name, index in keys:
            topic_id = self.topic_ids[name]
            wanted = fetch.FetchPartition(
                index,
                current_leader_epoch=self.epochs[name, index],
                fetch_offset=self.positions.get((topic_id, index), 0),
                partition_max_bytes=1 << 20,
            )
            topics.setdefault(name, fetch.FetchTopic(name, topic_id, [])).partitions.append(wanted)
        request = fetch.FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=1 if self.is_read_committed else 0,
            topics=list(topics.values()),
        )
        try:
            response = await self.call(address, request, timeout_seconds=1.0)
        except PeerError:
            self._is_refreshed = False
            return
        assert isinstance(response, fetch.FetchResponse)
        for found in response.responses:
            for data in found.partitions:
                self._take((found.topic_id, data.partition_index), data)

    def _take(self, key: Key, data: fetch.PartitionData) -> None:
        world = self.world
        if data.error_code:
            self._is_refreshed = False
            return
        committed = world.invariants.of(key)
        if data.high_watermark > committed.end:
            world.fail(f"I12: a consumer got high watermark {data.high_watermark}, committed are {committed.end}")
        records = bytes(data.records or b"")
        headers = parse_batches(records)
        for header in headers:
            batch = records[header.position : header.position + header.size]
            if header.last_offset >= committed.end:
                world.fail(f"I12: a consumer read offset {header.last_offset}, committed are {committed.end}")
            elif committed.batches.get(header.base_offset) != batch:
                world.fail(f"S2: a consumer read other bytes at offset {header.base_offset} than were committed")
            self.positions[key] = header.last_offset + 1
            world.count("read", header.record_count)
        if self.is_read_committed:
            world.transactions.check_read(key, records, headers, data)


class Admin(Client):
    """Creates topics, and changes them."""

    async def create_topic(self, name: str, *, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        """Create a topic; tries again until it exists."""
        topic = create_topics.CreatableTopic(
            name,
            partitions,
            replicas,
            configs=[create_topics.CreatableTopicConfig(key, value) for key, value in configs.items()],
        )
        while not self.world.is_over:
            request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=5000)
            try:
                response = await self.call(self.any_broker(), request, timeout_seconds=6.0)
            except PeerError:
                await self.pause(0.3)
                continue
            assert isinstance(response, create_topics.CreateTopicsResponse)
            if response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return
            await self.pause(0.3)

    async def change_something(self) -> None:
        """Send one change of a random kind; whether it succeeds does not matter."""
        await self.refresh()
        if not self.leaders:
            return
        kinds = [self._elect, self._reassign, self._reassign, self._cancel, self._configure, self._create_or_delete]
        if self.world.is_dynamic:
            kinds.append(self._remove_voter)
        request = self.rng.choice(kinds)()
        try:
            await self.call(self.any_broker(), request)
        except PeerError:
            self.world.count("lost changes")

    def _elect(self) -> Message:
        return elect_leaders.ElectLeadersRequest(topic_partitions=None, timeout_ms=2000)

    def _reassign(self) -> Message:
        replicas = self.rng.sample(sorted(self.world.nodes), min(3, len(self.world.nodes)))
        return _reassignment(*self.rng.choice(list(self.leaders)), replicas)

    def _cancel(self) -> Message:
        return _reassignment(*self.rng.choice(list(self.leaders)), None)

    def _configure(self) -> Message:
        topic, _ = self.rng.choice(list(self.leaders))
        config = incremental_alter_configs.AlterableConfig(
            "flush.messages", 0, self.rng.choice(["1", "5", "9223372036854775807"])
        )
        return incremental_alter_configs.IncrementalAlterConfigsRequest(
            [incremental_alter_configs.AlterConfigsResource(2, topic, [config])]
        )

    def _create_or_delete(self) -> Message:
        if TEMPORARY_TOPIC in self.topic_ids and (TEMPORARY_TOPIC, 0) in self.leaders:
            return delete_topics.DeleteTopicsRequest([delete_topics.DeleteTopicState(TEMPORARY_TOPIC)], timeout_ms=2000)
        topic = create_topics.CreatableTopic(TEMPORARY_TOPIC, 1, 3)
        return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=2000)

    def _remove_voter(self) -> Message:
        """A voter that runs joins again by itself."""
        voters = next((list(n.services.metadata.voters) for n in self.world.nodes.values() if n.services), [])
        key = self.rng.choice(voters).key if len(voters) > 2 else ReplicaKey(0)
        return remove_raft_voter.RemoveRaftVoterRequest(None, key.id, key.directory)


def _reassignment(
    topic: str, index: int, replicas: list[int] | None
) -> alter_partition_reassignments.AlterPartitionReassignmentsRequest:
    partition = alter_partition_reassignments.ReassignablePartition(index, replicas)
    wanted = [alter_partition_reassignments.ReassignableTopic(topic, [partition])]
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(timeout_ms=2000, topics=wanted)
