"""The broker without sockets, with a transaction coordinator in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from core_broker.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from core_broker.cluster.partition import Partition
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from core_broker.transactions.broker_calls import BrokerCalls
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.marker_delivery import LocalMarkers
from core_broker.transactions.markers import MarkerRequest
from core_broker.transactions.producer_ids import ProducerIds
from core_broker.transactions.transaction import Producer
from core_broker.transactions.verification import TransactionVerifier
from tests.support.handler_world import OFFSETS_PARTITIONS, HandlerWorld

STATE_PARTITIONS = 2
TX = "tx"


class TransactionHandlers:
    """A handler world whose transactions work, and the requests that lead up to the one under test."""

    def __init__(self, world: HandlerWorld) -> None:
        self.world = world
        self.call = world.call
        self.markers_may_be_written = asyncio.Event()
        self.markers_may_be_written.set()
        self.local_markers = LocalMarkers(world.partitions, world.services.groups.complete_transaction)
        self.coordinator = TransactionCoordinator(
            settings=world.settings,
            clock=world.clock,
            partitions=world.partitions,
            partition_count=lambda: STATE_PARTITIONS,
            producer_ids=ProducerIds(world.controller.allocate_producer_ids),
            write_marker=self._write_marker,
        )
        calls = BrokerCalls(None, image=lambda: world.quorum.image, listener_name="PLAINTEXT")
        world.services = msgspec.structs.replace(
            world.services,
            transactions=self.coordinator,
            transaction_verifier=TransactionVerifier(
                self.coordinator, calls, local_id=world.settings.node_id, image=lambda: world.quorum.image
            ),
            local_markers=self.local_markers,
        )
        world.partitions.on_leadership.append(self._take_over)

    def _take_over(self, partition: Partition) -> None:
        if partition.topic == TRANSACTIONS_TOPIC:
            self.coordinator.become_leader(partition.index, partition.leader_epoch)

    async def _write_marker(self, topic: str, partition: int, marker: MarkerRequest) -> ErrorCode:
        await self.markers_may_be_written.wait()
        return await self.local_markers.write(topic, partition, marker)

    async def init(self, transactional_id: str = TX, *, version: int = 4) -> Producer:
        """A producer, by request."""
        request = InitProducerIdRequest(transactional_id, 60_000)
        answer = await self.call(request, InitProducerIdResponse, version)
        assert answer.error_code == 0
        return Producer(answer.producer_id, answer.producer_epoch)

    async def begin(self, *partitions: int, transactional_id: str = TX) -> Producer:
        """A producer with partitions of `orders` in its transaction, by request."""
        producer = await self.init(transactional_id)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic("orders", list(partitions))],
        )
        answer = await self.call(request, AddPartitionsToTxnResponse, 3)
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        assert [result.partition_error_code for result in results] == [0] * len(partitions)
        return producer


@asynccontextmanager
async def transaction_handlers(world: HandlerWorld) -> AsyncIterator[TransactionHandlers]:
    """The internal topics, `orders` with two partitions, and a running coordinator."""
    handlers = TransactionHandlers(world)
    await world.create(TRANSACTIONS_TOPIC, STATE_PARTITIONS)
    await world.create(OFFSETS_TOPIC, OFFSETS_PARTITIONS)
    await world.create("orders", 2)
    running = asyncio.get_running_loop().create_task(handlers.coordinator.run())
    await asyncio.sleep(0)
    yield handlers
    running.cancel()
    await asyncio.wait([running])
