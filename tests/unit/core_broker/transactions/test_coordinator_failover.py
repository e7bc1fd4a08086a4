"""Transactions when the leader of their partition changes, also in the middle of a request."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.transaction import TRANSACTION_V0, TRANSACTION_V2, Producer, TransactionState
from tests.support.fake_transaction_log import TransactionWorld, let_others_run, settled

TX = "tx"
TIMEOUT_MS = 60_000
ORDERS = ("orders", 0)
PAYMENTS = ("payments", 1)


def elect_again(world: TransactionWorld, coordinator: TransactionCoordinator) -> None:
    """The partition of the transaction gets a new leader epoch, and the same coordinator is elected again."""
    partition = world.state.by_index[coordinator.partition_of(TX)]
    partition.leader_epoch += 1
    coordinator.resign(partition.index)
    coordinator.become_leader(partition.index, partition.leader_epoch)


async def begin(coordinator: TransactionCoordinator, version: int = TRANSACTION_V0) -> Producer:
    producer = await coordinator.init_producer_id(TX, TIMEOUT_MS)
    await coordinator.add_partitions(TX, producer, [ORDERS], client_version=version)
    return producer


async def code_of(request: Awaitable[object]) -> ErrorCode:
    try:
        result = await request
    except BrokerError as error:
        return error.code
    return result if isinstance(result, ErrorCode) else ErrorCode.NONE


async def init(coordinator: TransactionCoordinator, _producer: Producer) -> object:
    return await coordinator.init_producer_id(TX, TIMEOUT_MS)


async def add_partitions(coordinator: TransactionCoordinator, producer: Producer) -> None:
    await coordinator.add_partitions(TX, producer, [PAYMENTS], client_version=TRANSACTION_V0)


async def add_implicitly(coordinator: TransactionCoordinator, producer: Producer) -> object:
    return await coordinator.verify_or_add_partition(TX, *producer, *PAYMENTS, add=True)


async def commit(coordinator: TransactionCoordinator, producer: Producer) -> object:
    return await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0)


async def abort_with_new_epoch(coordinator: TransactionCoordinator, producer: Producer) -> object:
    return await coordinator.end(TX, producer, commit=False, client_version=TRANSACTION_V2)


REQUESTS = [init, add_partitions, add_implicitly, commit, abort_with_new_epoch]
Request = Callable[[TransactionCoordinator, Producer], Awaitable[object]]


@pytest.mark.parametrize("is_committed_first", [True, False])
@pytest.mark.parametrize("request_of", REQUESTS)
async def test_request_that_spans_a_change_of_leader_gets_not_coordinator_and_changes_nothing(
    request_of: Request, is_committed_first: bool
) -> None:
    world = TransactionWorld()
    async with world.running() as coordinator:
        producer = await begin(coordinator)
        partition = world.state.by_index[coordinator.partition_of(TX)]
        partition.gate = gate = asyncio.Event()
        waiting = asyncio.ensure_future(code_of(request_of(coordinator, producer)))
        await let_others_run()
        assert not waiting.done()
        if is_committed_first:
            gate.set()  # the request has not noticed yet
        elect_again(world, coordinator)
        gate.set()
        assert await waiting is ErrorCode.NOT_COORDINATOR
        await settled(coordinator)
        loaded = coordinator.describe(TX)
        assert loaded.state is not TransactionState.PREPARE_COMMIT
        partition.gate = None
    async with world.running() as successor:
        assert successor.describe(TX) == loaded


@pytest.mark.parametrize("request_of", REQUESTS)
async def test_request_in_a_new_epoch_that_the_coordinator_does_not_know_of_writes_nothing(
    request_of: Request,
) -> None:
    world = TransactionWorld()
    async with world.running() as coordinator:
        producer = await begin(coordinator)
        partition = world.state.by_index[coordinator.partition_of(TX)]
        partition.leader_epoch += 1
        end = partition.log.end_offset
        assert await code_of(request_of(coordinator, producer)) is ErrorCode.NOT_COORDINATOR
        assert partition.log.end_offset == end


async def test_decision_is_not_carried_out_before_it_is_committed() -> None:
    world = TransactionWorld()
    async with world.running() as coordinator:
        producer = await begin(coordinator)
        partition = world.state.by_index[coordinator.partition_of(TX)]
        partition.gate = gate = asyncio.Event()
        waiting = asyncio.ensure_future(code_of(commit(coordinator, producer)))
        await let_others_run()
        elect_again(world, coordinator)
        await let_others_run()
        with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            coordinator.describe(TX)
        assert world.topics.markers == []
        gate.set()
        assert await waiting is ErrorCode.NOT_COORDINATOR
        await settled(coordinator)
        assert [marker.coordinator_epoch for _, _, marker in world.topics.markers] == [partition.leader_epoch]
        assert coordinator.describe(TX).state is TransactionState.COMPLETE_COMMIT


async def test_markers_that_were_not_written_are_sent_again_with_the_epoch_of_the_next_coordinator() -> None:
    world = TransactionWorld()
    async with world.running() as coordinator:
        producer = await begin(coordinator)
        await coordinator.add_partitions(TX, producer, [PAYMENTS], client_version=TRANSACTION_V0)
        world.topics.stuck.add(PAYMENTS)
        await commit(coordinator, producer)
        await let_others_run()
        assert world.topics.of(*ORDERS) == [(*producer, True)]
        assert world.topics.of(*PAYMENTS) == []
    world.topics.stuck.clear()
    async with world.running() as successor:
        assert successor.describe(TX).state is TransactionState.COMPLETE_COMMIT
    assert world.topics.of(*PAYMENTS) == [(*producer, True)]
    epochs = [marker.coordinator_epoch for topic, _, marker in world.topics.markers if topic == "payments"]
    assert epochs == [world.leader_epoch]


async def test_open_transaction_times_out_under_the_next_coordinator() -> None:
    world = TransactionWorld()
    async with world.running() as coordinator:
        await begin(coordinator)
    world.clock.advance(TIMEOUT_MS + 1)
    async with world.running() as successor:
        await successor.abort_timed_out()
        await settled(successor)
        assert successor.describe(TX).state is TransactionState.COMPLETE_ABORT


async def test_resigned_coordinator_does_not_time_out_transactions_any_more() -> None:
    world = TransactionWorld()
    async with world.running() as coordinator:
        await begin(coordinator)
        coordinator.resign(coordinator.partition_of(TX))
        end = world.state.by_index[coordinator.partition_of(TX)].log.end_offset
        world.clock.advance(TIMEOUT_MS + 1)
        await coordinator.abort_timed_out()
        assert world.state.by_index[coordinator.partition_of(TX)].log.end_offset == end
