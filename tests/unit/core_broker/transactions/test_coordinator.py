"""The coordinator among fakes: what a client is told, what is stored, which markers are written."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable

import pytest

from core_broker.cluster.coordinators import partition_for
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.records import build_batch, iterate_records
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.records import read_record, record_of
from core_broker.transactions.transaction import (
    EPOCH_MAX,
    TRANSACTION_V0,
    TRANSACTION_V2,
    Producer,
    Transaction,
    TransactionState,
)
from tests.support.fake_transaction_log import STATE_PARTITIONS, TransactionWorld, let_others_run, settled

TX = "tx"
TIMEOUT_MS = 60_000
ORDERS = ("orders", 0)
PAYMENTS = ("payments", 1)


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


@pytest.fixture
async def coordinator(world: TransactionWorld) -> AsyncIterator[TransactionCoordinator]:
    async with world.running() as running:
        yield running


async def refusal(event: Awaitable[object]) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        await event
    return caught.value.code


async def init(coordinator: TransactionCoordinator, expected: Producer | None = None) -> Producer:
    return await coordinator.init_producer_id(TX, TIMEOUT_MS, expected=expected)


async def begin(coordinator: TransactionCoordinator, version: int = TRANSACTION_V0) -> Producer:
    producer = await init(coordinator)
    await coordinator.add_partitions(TX, producer, [ORDERS, PAYMENTS], client_version=version)
    return producer


def stored(world: TransactionWorld) -> list[Transaction | None]:
    """Every state that was written, in order."""
    found = []
    for partition in world.state.by_index:
        for header, buffer in partition.log.read_batches(0, partition.log.end_offset):
            for record in iterate_records(buffer, header):
                read = read_record(record)
                assert read is not None
                found.append(read[1])
    return found


def stored_states(world: TransactionWorld) -> list[str]:
    return [found.state.label if found is not None else "forgotten" for found in stored(world)]


class TestInitProducerId:
    async def test_idempotent_producer_gets_an_id_without_anything_being_stored(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        assert await coordinator.init_producer_id(None, 0) == Producer(1000, 0)
        assert await coordinator.init_producer_id(None, 0) == Producer(1001, 0)
        assert stored(world) == []

    async def test_transactional_producer_is_stored_before_it_is_answered(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        assert await init(coordinator) == Producer(1000, 0)
        assert stored_states(world) == ["Empty"]

    async def test_empty_transactional_id_is_refused(self, coordinator: TransactionCoordinator) -> None:
        assert await refusal(coordinator.init_producer_id("", TIMEOUT_MS)) is ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
    async def test_time_out_outside_the_limits_is_refused(
        self, coordinator: TransactionCoordinator, timeout_ms: int
    ) -> None:
        code = await refusal(coordinator.init_producer_id(TX, timeout_ms))
        assert code is ErrorCode.INVALID_TRANSACTION_TIMEOUT

    async def test_second_producer_fences_the_first(self, coordinator: TransactionCoordinator) -> None:
        first = await init(coordinator)
        second = await init(coordinator)
        assert second == Producer(first.producer_id, first.epoch + 1)
        added = coordinator.add_partitions(TX, first, [ORDERS], client_version=TRANSACTION_V0)
        assert await refusal(added) is ErrorCode.PRODUCER_FENCED

    async def test_open_transaction_of_the_predecessor_is_aborted(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        first = await begin(coordinator)
        assert await refusal(init(coordinator)) is ErrorCode.CONCURRENT_TRANSACTIONS
        await settled(coordinator)
        assert world.topics.of(*ORDERS) == [(first.producer_id, first.epoch + 2, False)]
        assert await init(coordinator) == Producer(first.producer_id, first.epoch + 3)

    async def test_new_producer_is_answered_at_once_if_the_abort_is_quick(self, world: TransactionWorld) -> None:
        world.completion_wait_ms = 60_000
        async with world.running() as coordinator:
            first = await begin(coordinator)
            assert await init(coordinator) == Producer(first.producer_id, first.epoch + 3)

    async def test_two_first_producers_at_the_same_time_do_not_both_win(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        world.state.by_index[coordinator.partition_of(TX)].gate = gate = asyncio.Event()
        tries = [asyncio.ensure_future(init(coordinator)) for _ in range(2)]
        await let_others_run()
        gate.set()
        answers = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(answer, Producer) for answer in answers) == 1
        assert [error.code for error in answers if isinstance(error, BrokerError)] == [
            ErrorCode.CONCURRENT_TRANSACTIONS
        ]

    async def test_transactional_id_that_could_not_be_stored_is_as_if_it_had_never_been(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        world.state.by_index[coordinator.partition_of(TX)].failures.append(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert await refusal(init(coordinator)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(BrokerError) as caught:
            coordinator.describe(TX)
        assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await init(coordinator)).epoch == 0


class TestPartitions:
    async def test_partitions_are_stored_before_the_answer(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        await begin(coordinator)
        last = stored(world)[-1]
        assert last is not None
        assert last.partitions == {ORDERS, PAYMENTS}

    async def test_adding_again_stores_nothing(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        before = len(stored(world))
        await coordinator.add_partitions(TX, producer, [ORDERS], client_version=TRANSACTION_V0)
        assert len(stored(world)) == before

    async def test_unknown_transactional_id_has_no_producer(self, coordinator: TransactionCoordinator) -> None:
        added = coordinator.add_partitions("other", Producer(1, 0), [ORDERS], client_version=TRANSACTION_V0)
        assert await refusal(added) is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    async def test_verification_tells_which_partitions_were_added(self, coordinator: TransactionCoordinator) -> None:
        producer = await begin(coordinator)
        assert coordinator.verify_partitions(TX, producer, [ORDERS, ("orders", 1)]) == {
            ORDERS: ErrorCode.NONE,
            ("orders", 1): ErrorCode.TRANSACTION_ABORTABLE,
        }

    async def test_partition_of_the_open_transaction_is_known_without_asking(
        self, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        assert coordinator.is_partition_in_transaction(TX, *producer, *ORDERS)
        assert not coordinator.is_partition_in_transaction(TX, *producer, "orders", 1)
        assert not coordinator.is_partition_in_transaction(TX, producer.producer_id, producer.epoch - 1, *ORDERS)
        assert not coordinator.is_partition_in_transaction("other", *producer, *ORDERS)

    async def test_partition_is_no_longer_open_while_the_end_is_being_stored(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.state.by_index[coordinator.partition_of(TX)].gate = gate = asyncio.Event()
        ending = asyncio.ensure_future(coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0))
        await asyncio.sleep(0)
        assert not coordinator.is_partition_in_transaction(TX, *producer, *ORDERS)
        verified = await coordinator.verify_or_add_partition(TX, *producer, *ORDERS, add=False)
        assert verified is ErrorCode.CONCURRENT_TRANSACTIONS
        gate.set()
        await ending

    async def test_older_producer_must_have_added_the_partition(self, coordinator: TransactionCoordinator) -> None:
        producer = await begin(coordinator)
        verify = coordinator.verify_or_add_partition
        assert await verify(TX, *producer, *ORDERS, add=False) is ErrorCode.NONE
        assert await verify(TX, *producer, "orders", 1, add=False) is ErrorCode.INVALID_TXN_STATE
        known = await verify(TX, *producer, "orders", 1, add=False, knows_abortable=True)
        assert known is ErrorCode.TRANSACTION_ABORTABLE

    async def test_newer_producer_adds_the_partition_by_writing_to_it(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await init(coordinator)
        assert await coordinator.verify_or_add_partition(TX, *producer, *ORDERS, add=True) is ErrorCode.NONE
        assert coordinator.is_partition_in_transaction(TX, *producer, *ORDERS)
        assert stored_states(world) == ["Empty", "Ongoing"]
        assert coordinator.describe(TX).client_version == TRANSACTION_V2

    async def test_fenced_producer_is_told_in_a_way_all_producers_understand(
        self, coordinator: TransactionCoordinator
    ) -> None:
        zombie = await init(coordinator)
        await init(coordinator)
        for add in (True, False):
            answer = await coordinator.verify_or_add_partition(TX, *zombie, *ORDERS, add=add)
            assert answer is ErrorCode.INVALID_PRODUCER_EPOCH


class TestEnd:
    @pytest.mark.parametrize("commit", [True, False])
    async def test_decision_reaches_every_partition(
        self, world: TransactionWorld, coordinator: TransactionCoordinator, commit: bool
    ) -> None:
        producer = await begin(coordinator)
        assert await coordinator.end(TX, producer, commit=commit, client_version=TRANSACTION_V0) == producer
        await settled(coordinator)
        assert world.topics.of(*ORDERS) == world.topics.of(*PAYMENTS) == [(*producer, commit)]
        decision = "Commit" if commit else "Abort"
        assert stored_states(world) == ["Empty", "Ongoing", f"Prepare{decision}", f"Complete{decision}"]

    async def test_no_marker_is_written_before_the_decision_is_committed(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.state.by_index[coordinator.partition_of(TX)].gate = gate = asyncio.Event()
        ending = asyncio.ensure_future(coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0))
        await let_others_run()
        assert world.topics.markers == []
        gate.set()
        await ending
        await settled(coordinator)
        assert world.topics.of(*ORDERS) == [(*producer, True)]

    async def test_decision_that_could_not_be_stored_changes_nothing(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.state.by_index[coordinator.partition_of(TX)].failures.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        ending = coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V2)
        assert await refusal(ending) is ErrorCode.NOT_COORDINATOR
        await settled(coordinator)
        assert world.topics.markers == []
        assert await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V2) == Producer(
            producer.producer_id, producer.epoch + 1
        )

    async def test_answer_does_not_wait_for_markers(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.topics.gate = gate = asyncio.Event()
        await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
        added = coordinator.add_partitions(TX, producer, [ORDERS], client_version=TRANSACTION_V0)
        assert await refusal(added) is ErrorCode.CONCURRENT_TRANSACTIONS
        gate.set()
        await settled(coordinator)
        await coordinator.add_partitions(TX, producer, [ORDERS], client_version=TRANSACTION_V0)

    async def test_transaction_is_complete_when_the_answer_comes_if_the_markers_are_quick(
        self, world: TransactionWorld
    ) -> None:
        world.completion_wait_ms = 60_000
        async with world.running() as coordinator:
            await coordinator.end(TX, await begin(coordinator), commit=True, client_version=TRANSACTION_V0)
            assert coordinator.describe(TX).state is TransactionState.COMPLETE_COMMIT

    async def test_next_transaction_waits_a_moment_for_the_markers_of_the_last(self, world: TransactionWorld) -> None:
        world.topics.gate = asyncio.Event()
        async with world.running() as first:
            producer = await begin(first)
            await first.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
        world.completion_wait_ms = 60_000
        async with world.running() as second:
            await let_others_run()
            adding = asyncio.ensure_future(second.add_partitions(TX, producer, [ORDERS], client_version=TRANSACTION_V0))
            await let_others_run()
            assert not adding.done()
            world.topics.gate.set()
            await adding
            assert second.describe(TX).state is TransactionState.ONGOING

    async def test_stuck_partition_does_not_hold_up_other_transactions(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        world.topics.stuck.add(PAYMENTS)
        await coordinator.end(TX, await begin(coordinator), commit=True, client_version=TRANSACTION_V0)
        other = await coordinator.init_producer_id("other", TIMEOUT_MS)
        await coordinator.add_partitions("other", other, [ORDERS], client_version=TRANSACTION_V0)
        await coordinator.end("other", other, commit=True, client_version=TRANSACTION_V0)
        await let_others_run()
        assert coordinator.describe("other").state is TransactionState.COMPLETE_COMMIT
        assert coordinator.describe(TX).state is TransactionState.PREPARE_COMMIT

    async def test_completion_is_stored_again_until_it_is_committed(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
        world.state.by_index[coordinator.partition_of(TX)].failures.extend([ErrorCode.REQUEST_TIMED_OUT] * 3)
        await settled(coordinator)
        assert coordinator.describe(TX).state is TransactionState.COMPLETE_COMMIT
        assert len(world.pauses) == 3

    async def test_markers_of_a_newer_producers_transaction_carry_the_bumped_epoch(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator, TRANSACTION_V2)
        bumped = await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V2)
        await settled(coordinator)
        assert world.topics.of(*ORDERS) == [(*bumped, True)]
        assert world.topics.markers[0][2].transaction_version == 2

    async def test_epochs_that_run_out_bring_a_new_producer_id(self, world: TransactionWorld) -> None:
        last = Producer(7, EPOCH_MAX - 1)
        state = Transaction(
            transactional_id=TX, producer_id=7, producer_epoch=last.epoch, timeout_ms=TIMEOUT_MS, updated_ms=0
        )
        index = partition_for(TX, STATE_PARTITIONS)
        world.state.by_index[index].append(build_batch([record_of(state, transaction_version=2)]), acks_all=True)
        async with world.running() as coordinator:
            await coordinator.add_partitions(TX, last, [ORDERS], client_version=TRANSACTION_V2)
            following = await coordinator.end(TX, last, commit=True, client_version=TRANSACTION_V2)
            await settled(coordinator)
            assert (following.producer_id, following.epoch) == (1000, 0)
            assert world.topics.of(*ORDERS) == [(7, EPOCH_MAX, True)]
            assert await coordinator.end(TX, last, commit=True, client_version=TRANSACTION_V2) == following
            await coordinator.add_partitions(TX, following, [ORDERS], client_version=TRANSACTION_V2)


class TestTime:
    async def test_transaction_open_for_too_long_is_aborted_and_its_producer_fenced(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.clock.advance(TIMEOUT_MS + 1)
        await coordinator.abort_timed_out()
        await settled(coordinator)
        assert world.topics.of(*ORDERS) == [(producer.producer_id, producer.epoch + 2, False)]
        ending = coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
        assert await refusal(ending) is ErrorCode.PRODUCER_FENCED

    async def test_transaction_within_its_time_is_left_alone(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        await begin(coordinator)
        world.clock.advance(TIMEOUT_MS)
        await coordinator.abort_timed_out()
        assert coordinator.describe(TX).state is TransactionState.ONGOING

    async def test_abort_that_could_not_be_stored_is_tried_at_the_next_check(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        await begin(coordinator)
        world.clock.advance(TIMEOUT_MS + 1)
        world.state.by_index[coordinator.partition_of(TX)].failures.append(ErrorCode.NOT_ENOUGH_REPLICAS)
        await coordinator.abort_timed_out()
        assert coordinator.describe(TX).state is TransactionState.ONGOING
        await coordinator.abort_timed_out()
        await settled(coordinator)
        assert coordinator.describe(TX).state is TransactionState.COMPLETE_ABORT

    async def test_unused_transactional_id_is_forgotten(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        await init(coordinator)
        world.clock.advance(world.settings.transactional_id_expiration_ms)
        await coordinator.forget_expired()
        assert stored_states(world) == ["Empty", "forgotten"]
        assert list(coordinator.transactions()) == []

    async def test_transactional_id_in_use_is_kept(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        await begin(coordinator)
        world.clock.advance(world.settings.transactional_id_expiration_ms)
        await coordinator.forget_expired()
        assert coordinator.describe(TX).state is TransactionState.ONGOING

    async def test_run_looks_for_late_transactions_by_itself(self, world: TransactionWorld) -> None:
        async with world.running() as coordinator:
            await begin(coordinator)
            world.clock.advance(TIMEOUT_MS + 1)
            world.timer.set()
            await let_others_run()
            await settled(coordinator)
            assert coordinator.describe(TX).state is TransactionState.COMPLETE_ABORT


class TestLeadership:
    async def test_other_brokers_transactional_id_is_refused(self, coordinator: TransactionCoordinator) -> None:
        coordinator.resign(coordinator.partition_of(TX))
        assert await refusal(init(coordinator)) is ErrorCode.NOT_COORDINATOR

    async def test_partition_is_not_served_before_it_is_loaded(self, world: TransactionWorld) -> None:
        async with world.running() as first:
            await begin(first)
        second = world.coordinator()
        assert await refusal(init(second)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            second.transactions()

    async def test_empty_partition_is_served_at_once(self, world: TransactionWorld) -> None:
        assert await init(world.coordinator()) == Producer(1000, 0)

    async def test_open_transaction_survives_a_restart(self, world: TransactionWorld) -> None:
        async with world.running() as first:
            producer = await begin(first)
        async with world.running() as second:
            assert second.is_partition_in_transaction(TX, *producer, *ORDERS)
            await second.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
            await settled(second)
        assert world.topics.of(*ORDERS) == [(*producer, True)]

    async def test_open_transaction_times_out_after_a_restart_too(self, world: TransactionWorld) -> None:
        async with world.running() as first:
            await begin(first)
        world.clock.advance(TIMEOUT_MS + 1)
        async with world.running() as second:
            await second.abort_timed_out()
            await settled(second)
            assert second.describe(TX).state is TransactionState.COMPLETE_ABORT

    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", [TRANSACTION_V0, TRANSACTION_V2])
    async def test_decision_made_before_a_crash_is_carried_out_after_it(
        self, world: TransactionWorld, commit: bool, version: int
    ) -> None:
        world.topics.gate = asyncio.Event()
        async with world.running() as first:
            producer = await begin(first)
            following = await first.end(TX, producer, commit=commit, client_version=version)
        world.topics.gate = None
        assert world.topics.markers == []
        async with world.running() as second:
            assert world.topics.of(*ORDERS) == world.topics.of(*PAYMENTS) == [(*following, commit)]
            assert await second.end(TX, producer, commit=commit, client_version=version) == following

    async def test_markers_wait_until_the_coordinator_runs(self, world: TransactionWorld) -> None:
        """At start partitions appear one by one; one that is not there yet must not be taken for deleted."""
        world.topics.gate = asyncio.Event()
        async with world.running() as first:
            await first.end(TX, await begin(first), commit=True, client_version=TRANSACTION_V0)
        world.topics.gate = None
        world.coordinator()
        await let_others_run()
        assert world.topics.markers == []

    async def test_forgotten_transactional_id_stays_forgotten(self, world: TransactionWorld) -> None:
        async with world.running() as first:
            await init(first)
            world.clock.advance(world.settings.transactional_id_expiration_ms)
            await first.forget_expired()
        async with world.running() as second:
            assert list(second.transactions()) == []

    async def test_resigned_coordinator_does_not_complete_the_transaction(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.topics.gate = gate = asyncio.Event()
        await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
        await asyncio.sleep(0)
        coordinator.resign(coordinator.partition_of(TX))
        gate.set()
        await settled(coordinator)
        assert stored_states(world)[-1] == "PrepareCommit"

    async def test_request_that_spans_a_change_of_leadership_is_sent_elsewhere(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        index = coordinator.partition_of(TX)
        world.state.by_index[index].gate = gate = asyncio.Event()
        ending = asyncio.ensure_future(coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0))
        await asyncio.sleep(0)
        coordinator.resign(index)
        gate.set()
        assert await refusal(ending) is ErrorCode.NOT_COORDINATOR
        assert world.topics.markers == []

    async def test_same_leader_epoch_is_not_loaded_twice(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        coordinator.become_leader(coordinator.partition_of(TX), world.leader_epoch)
        assert coordinator.is_partition_in_transaction(TX, *producer, *ORDERS)

    async def test_record_that_cannot_be_read_does_not_keep_the_others_from_loading(
        self, world: TransactionWorld
    ) -> None:
        async with world.running() as first:
            await begin(first)
            batches = world.state.by_index[first.partition_of(TX)].log.batches
            batches.insert(1, bytearray(batches[0][:-3]) + b"\xff\xff\xff")
        async with world.running() as second:
            assert second.describe(TX).state is TransactionState.ONGOING

    async def test_deleted_topic_does_not_keep_a_transaction_from_completing(
        self, world: TransactionWorld, coordinator: TransactionCoordinator
    ) -> None:
        producer = await begin(coordinator)
        world.topics.failures[ORDERS] = deque([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
        await coordinator.end(TX, producer, commit=True, client_version=TRANSACTION_V0)
        await settled(coordinator)
        assert coordinator.describe(TX).state is TransactionState.COMPLETE_COMMIT
