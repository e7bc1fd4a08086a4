from collections.abc import Callable

import msgspec
import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.transactions.transaction import (
    EPOCH_MAX,
    TRANSACTION_V0,
    TRANSACTION_V2,
    Producer,
    Transaction,
    TransactionState,
    add_partitions,
    check_can_verify,
    complete,
    create,
    end,
    fence,
    has_expired,
    has_timed_out,
    initialize,
    restore,
)

NOW = 5_000
NEW_ID = 900
ORDERS = frozenset({("orders", 0)})
HOLDER = Producer(7, 3)


def transaction(state: TransactionState = TransactionState.EMPTY, **changes: object) -> Transaction:
    values = {"transactional_id": "tx", "producer_id": 7, "producer_epoch": 3, "timeout_ms": 1000, "state": state}
    if state not in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        values |= {"partitions": ORDERS, "start_ms": 100}
    return msgspec.convert(values | changes, Transaction)


def init(current: Transaction, expected: Producer | None = None, **options: bool) -> Transaction:
    return initialize(
        current,
        timeout_ms=1000,
        expected=expected,
        new_producer_id=NEW_ID,
        now_ms=NOW,
        server_version=TRANSACTION_V2,
        **options,
    )


def add(current: Transaction, producer: Producer = HOLDER, *partitions: tuple[str, int]) -> Transaction:
    return add_partitions(current, producer, partitions or ORDERS, client_version=TRANSACTION_V0, now_ms=NOW)


def end_v0(current: Transaction, producer: Producer = HOLDER, *, commit: bool = True) -> Transaction:
    return end(current, producer, commit=commit, client_version=TRANSACTION_V0, new_producer_id=NEW_ID, now_ms=NOW)


def end_v2(
    current: Transaction, producer: Producer = HOLDER, *, commit: bool = True, is_changing: bool = False
) -> Transaction:
    return end(
        current,
        producer,
        commit=commit,
        client_version=TRANSACTION_V2,
        new_producer_id=NEW_ID,
        now_ms=NOW,
        is_changing=is_changing,
    )


def refusal(event: Callable[[], object]) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        event()
    return caught.value.code


class TestInitProducerId:
    def test_new_transactional_id_starts_with_epoch_zero(self) -> None:
        new = create("tx", 7, timeout_ms=1000, now_ms=NOW)
        assert init(new).producer == Producer(7, 0)

    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_next_producer_gets_the_next_epoch(self, state: TransactionState) -> None:
        changed = init(transaction(state))
        assert (changed.state, changed.producer) == (TransactionState.EMPTY, Producer(7, 4))

    def test_time_out_is_the_one_asked_for_last(self) -> None:
        changed = initialize(
            transaction(),
            timeout_ms=60_000,
            expected=None,
            new_producer_id=NEW_ID,
            now_ms=NOW,
            server_version=TRANSACTION_V2,
        )
        assert changed.timeout_ms == 60_000

    def test_open_transaction_is_aborted_first(self) -> None:
        changed = init(transaction(TransactionState.ONGOING))
        assert changed.state is TransactionState.PREPARE_ABORT
        assert changed.partitions == ORDERS

    def test_aborting_for_a_new_producer_moves_the_epoch_out_of_the_old_ones_reach(self) -> None:
        assert init(transaction(TransactionState.ONGOING)).producer_epoch == 5

    @pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
    def test_prepared_transaction_must_complete_first(self, state: TransactionState) -> None:
        assert refusal(lambda: init(transaction(state))) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_change_in_progress_is_waited_for(self) -> None:
        assert refusal(lambda: init(transaction(), is_changing=True)) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_exhausted_epochs_bring_a_new_producer_id(self) -> None:
        changed = init(transaction(producer_epoch=EPOCH_MAX - 1))
        assert (changed.producer, changed.previous_producer_id) == (Producer(NEW_ID, 0), 7)

    def test_last_epoch_for_clients_is_one_below_the_greatest(self) -> None:
        assert init(transaction(producer_epoch=EPOCH_MAX - 2)).producer == Producer(7, EPOCH_MAX - 1)


class TestInitProducerIdAfterAnError:
    """KIP-360: the producer says what it believes to hold."""

    def test_holder_gets_the_next_epoch(self) -> None:
        assert init(transaction(), Producer(7, 3)).producer == Producer(7, 4)

    def test_retry_gets_the_same_epoch_again(self) -> None:
        first = init(transaction(), Producer(7, 3))
        assert init(first, Producer(7, 3)).producer == first.producer

    def test_producer_replaced_by_another_is_fenced(self) -> None:
        replaced = init(transaction())
        assert refusal(lambda: init(replaced, Producer(7, 3))) is ErrorCode.PRODUCER_FENCED

    def test_unknown_producer_id_is_fenced(self) -> None:
        assert refusal(lambda: init(transaction(), Producer(8, 3))) is ErrorCode.PRODUCER_FENCED

    def test_producer_of_a_forgotten_transactional_id_may_go_on(self) -> None:
        new = create("tx", 20, timeout_ms=1000, now_ms=NOW)
        assert init(new, Producer(7, 3)).producer == Producer(20, 0)

    def test_retry_after_the_epochs_ran_out_gets_the_new_id_again(self) -> None:
        holder = Producer(7, EPOCH_MAX - 1)
        first = init(transaction(producer_epoch=EPOCH_MAX - 1), holder)
        again = init(first, holder)
        assert again.producer == first.producer == Producer(NEW_ID, 0)
        assert init(again, holder).producer == first.producer

    def test_fenced_producer_cannot_abort_the_transaction_of_its_successor(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert refusal(lambda: init(ongoing, Producer(7, 2))) is ErrorCode.PRODUCER_FENCED

    def test_holder_that_lost_track_of_its_open_transaction_gets_an_epoch_once_it_is_aborted(self) -> None:
        aborting = init(transaction(TransactionState.ONGOING), Producer(7, 3))
        aborted = complete(aborting, now_ms=NOW)
        assert init(aborted, Producer(7, 3)).producer == Producer(7, 5)


class TestAddPartitions:
    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_first_partition_begins_a_transaction(self, state: TransactionState) -> None:
        changed = add(transaction(state))
        assert (changed.state, changed.start_ms, changed.partitions) == (TransactionState.ONGOING, NOW, ORDERS)

    def test_later_partition_keeps_the_start_time(self) -> None:
        changed = add(transaction(TransactionState.ONGOING), Producer(7, 3), ("payments", 1))
        assert changed.start_ms == 100
        assert changed.partitions == ORDERS | {("payments", 1)}

    def test_partition_added_before_changes_nothing(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert add(ongoing) is ongoing

    def test_other_producer_id_is_refused(self) -> None:
        assert refusal(lambda: add(transaction(), Producer(8, 3))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    @pytest.mark.parametrize("epoch", [2, 4])
    def test_other_epoch_is_fenced(self, epoch: int) -> None:
        assert refusal(lambda: add(transaction(), Producer(7, epoch))) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
    def test_next_transaction_waits_for_the_prepared_one(self, state: TransactionState) -> None:
        assert refusal(lambda: add(transaction(state))) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_new_producer_id_waits_for_the_transaction_that_exhausted_the_old_one(self) -> None:
        prepared = end_v2(
            transaction(TransactionState.ONGOING, producer_epoch=EPOCH_MAX - 1), Producer(7, EPOCH_MAX - 1)
        )
        assert refusal(lambda: add(prepared, Producer(NEW_ID, 0))) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_verification_is_refused_to_a_fenced_producer(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert refusal(lambda: check_can_verify(ongoing, Producer(7, 2))) is ErrorCode.PRODUCER_FENCED

    def test_verification_is_refused_while_the_transaction_is_being_ended(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        code = refusal(lambda: check_can_verify(ongoing, Producer(7, 3), is_ending=True))
        assert code is ErrorCode.CONCURRENT_TRANSACTIONS


class TestEndWithTheOlderProtocol:
    @pytest.mark.parametrize(
        "commit, state", [(True, TransactionState.PREPARE_COMMIT), (False, TransactionState.PREPARE_ABORT)]
    )
    def test_open_transaction_is_prepared_without_a_new_epoch(self, commit: bool, state: TransactionState) -> None:
        changed = end_v0(transaction(TransactionState.ONGOING), commit=commit)
        assert (changed.state, changed.producer, changed.partitions) == (state, Producer(7, 3), ORDERS)

    @pytest.mark.parametrize(
        "commit, state", [(True, TransactionState.COMPLETE_COMMIT), (False, TransactionState.COMPLETE_ABORT)]
    )
    def test_retry_after_completion_succeeds_again(self, commit: bool, state: TransactionState) -> None:
        completed = transaction(state)
        assert end_v0(completed, commit=commit) is completed

    @pytest.mark.parametrize(
        "commit, state", [(True, TransactionState.PREPARE_COMMIT), (False, TransactionState.PREPARE_ABORT)]
    )
    def test_retry_before_completion_must_wait(self, commit: bool, state: TransactionState) -> None:
        assert refusal(lambda: end_v0(transaction(state), commit=commit)) is ErrorCode.CONCURRENT_TRANSACTIONS

    @pytest.mark.parametrize(
        "commit, state",
        [
            (True, TransactionState.EMPTY),
            (False, TransactionState.EMPTY),
            (False, TransactionState.COMPLETE_COMMIT),
            (True, TransactionState.COMPLETE_ABORT),
            (False, TransactionState.PREPARE_COMMIT),
            (True, TransactionState.PREPARE_ABORT),
        ],
    )
    def test_end_that_contradicts_the_state_is_refused(self, commit: bool, state: TransactionState) -> None:
        assert refusal(lambda: end_v0(transaction(state), commit=commit)) is ErrorCode.INVALID_TXN_STATE

    def test_fenced_producer_cannot_end(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert refusal(lambda: end_v0(ongoing, Producer(7, 2))) is ErrorCode.PRODUCER_FENCED

    def test_other_producer_id_cannot_end(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert refusal(lambda: end_v0(ongoing, Producer(8, 3))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


class TestEndWithTransactionVersion2:
    @pytest.mark.parametrize("commit", [True, False])
    def test_end_bumps_the_epoch(self, commit: bool) -> None:
        assert end_v2(transaction(TransactionState.ONGOING), commit=commit).next_producer == Producer(7, 4)

    @pytest.mark.parametrize("commit", [True, False])
    def test_retry_with_the_epoch_before_gets_the_same_answer(self, commit: bool) -> None:
        prepared = end_v2(transaction(TransactionState.ONGOING), commit=commit)
        completed = complete(prepared, now_ms=NOW)
        assert end_v2(completed, commit=commit).next_producer == prepared.next_producer

    @pytest.mark.parametrize("commit", [True, False])
    def test_retry_that_asks_for_the_opposite_is_refused(self, commit: bool) -> None:
        completed = complete(end_v2(transaction(TransactionState.ONGOING), commit=commit), now_ms=NOW)
        assert refusal(lambda: end_v2(completed, commit=not commit)) is ErrorCode.INVALID_TXN_STATE

    def test_retry_before_completion_must_wait(self) -> None:
        prepared = end_v2(transaction(TransactionState.ONGOING))
        assert refusal(lambda: end_v2(prepared)) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_delayed_end_cannot_touch_the_next_transaction(self) -> None:
        completed = complete(end_v2(transaction(TransactionState.ONGOING)), now_ms=NOW)
        following = add(completed, Producer(7, 4))
        assert refusal(lambda: end_v2(following)) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_kafka_18464_abort_of_an_empty_transaction_bumps_the_epoch_and_fences_nobody(
        self, state: TransactionState
    ) -> None:
        prepared = end_v2(transaction(state), commit=False)
        assert (prepared.state, prepared.next_producer) == (TransactionState.PREPARE_ABORT, Producer(7, 4))
        assert prepared.start_ms == NOW

    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_commit_of_an_empty_transaction_is_refused(self, state: TransactionState) -> None:
        assert refusal(lambda: end_v2(transaction(state))) is ErrorCode.INVALID_TXN_STATE

    def test_empty_abort_that_comes_before_the_last_transaction_is_complete_waits(self) -> None:
        prepared = end_v2(transaction(TransactionState.ONGOING))
        code = refusal(lambda: end_v2(prepared, Producer(7, 4), commit=False))
        assert code is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_retry_in_the_empty_state_is_fenced(self) -> None:
        assert refusal(lambda: end_v2(transaction(), Producer(7, 2), commit=False)) is ErrorCode.PRODUCER_FENCED

    def test_fenced_producer_is_told_so_even_during_a_change(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert refusal(lambda: end_v2(ongoing, Producer(7, 2), is_changing=True)) is ErrorCode.PRODUCER_FENCED

    def test_change_in_progress_is_waited_for(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert refusal(lambda: end_v2(ongoing, is_changing=True)) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_exhausted_epochs_bring_a_new_producer_id(self) -> None:
        last = Producer(7, EPOCH_MAX - 1)
        prepared = end_v2(transaction(TransactionState.ONGOING, producer_epoch=last.epoch), last)
        assert (prepared.producer, prepared.next_producer) == (Producer(7, EPOCH_MAX), Producer(NEW_ID, 0))
        assert complete(prepared, now_ms=NOW).producer == Producer(NEW_ID, 0)

    def test_retry_after_the_epochs_ran_out_gets_the_new_id_again(self) -> None:
        last = Producer(7, EPOCH_MAX - 1)
        prepared = end_v2(transaction(TransactionState.ONGOING, producer_epoch=last.epoch), last)
        completed = complete(prepared, now_ms=NOW)
        assert end_v2(completed, last).next_producer == Producer(NEW_ID, 0)

    def test_zombie_of_an_older_protocols_successor_is_not_taken_for_a_retry(self) -> None:
        """Another producer, with the older protocol, has committed under the epoch after the zombie's."""
        completed = transaction(TransactionState.COMPLETE_COMMIT, client_version=TRANSACTION_V0)
        assert refusal(lambda: end_v2(completed, Producer(7, 2))) is ErrorCode.PRODUCER_FENCED


class TestFencing:
    def test_producer_whose_transaction_timed_out_cannot_end_it(self) -> None:
        aborted = complete(
            fence(transaction(TransactionState.ONGOING), server_version=TRANSACTION_V2, now_ms=NOW), now_ms=NOW
        )
        assert refusal(lambda: end_v0(aborted, commit=True)) is ErrorCode.PRODUCER_FENCED
        assert refusal(lambda: end_v0(aborted, commit=False)) is ErrorCode.PRODUCER_FENCED
        assert refusal(lambda: end_v2(aborted, commit=True)) is ErrorCode.PRODUCER_FENCED
        assert refusal(lambda: end_v2(aborted, commit=False)) is ErrorCode.PRODUCER_FENCED

    def test_holder_of_the_last_epoch_is_fenced_too(self) -> None:
        last = Producer(7, EPOCH_MAX - 1)
        ongoing = transaction(TransactionState.ONGOING, producer_epoch=last.epoch)
        aborted = complete(fence(ongoing, server_version=TRANSACTION_V2, now_ms=NOW), now_ms=NOW)
        assert refusal(lambda: end_v2(aborted, last, commit=False)) is ErrorCode.PRODUCER_FENCED
        assert init(aborted).producer == Producer(NEW_ID, 0)

    def test_before_transaction_version_2_one_epoch_is_enough(self) -> None:
        assert fence(transaction(TransactionState.ONGOING), server_version=1, now_ms=NOW).producer_epoch == 4

    def test_transaction_is_late_only_after_its_time_out(self) -> None:
        ongoing = transaction(TransactionState.ONGOING)
        assert not has_timed_out(ongoing, 1100)
        assert has_timed_out(ongoing, 1101)

    def test_prepared_transaction_never_times_out(self) -> None:
        assert not has_timed_out(transaction(TransactionState.PREPARE_COMMIT), 10**9)

    def test_only_idle_transactional_ids_expire(self) -> None:
        assert has_expired(transaction(TransactionState.COMPLETE_COMMIT, updated_ms=0), 1000, 1000)
        assert not has_expired(transaction(TransactionState.COMPLETE_COMMIT, updated_ms=1), 1000, 1000)
        assert not has_expired(transaction(TransactionState.ONGOING, updated_ms=0), 1000, 1000)


class TestRestored:
    """What Kafka's format does not store is worked out again."""

    @staticmethod
    def forget_last_epoch(current: Transaction) -> Transaction:
        return msgspec.structs.replace(current, last_producer_epoch=-1)

    @pytest.mark.parametrize("epoch", [3, EPOCH_MAX - 2, EPOCH_MAX - 1])
    def test_retried_end_gets_its_answer_from_the_next_coordinator(self, epoch: int) -> None:
        holder = Producer(7, epoch)
        prepared = end_v2(transaction(TransactionState.ONGOING, producer_epoch=epoch), holder)
        for state in (prepared, complete(prepared, now_ms=NOW)):
            assert restore(self.forget_last_epoch(state)) == state

    @pytest.mark.parametrize("epoch", [3, EPOCH_MAX - 2, EPOCH_MAX - 1])
    def test_fenced_producer_stays_fenced(self, epoch: int) -> None:
        fenced = fence(
            transaction(TransactionState.ONGOING, producer_epoch=epoch), server_version=TRANSACTION_V2, now_ms=NOW
        )
        after = restore(self.forget_last_epoch(complete(fenced, now_ms=NOW)))
        assert refusal(lambda: end_v2(after, Producer(7, epoch), commit=False)) is ErrorCode.PRODUCER_FENCED

    def test_completing_what_is_not_prepared_is_a_mistake_of_ours(self) -> None:
        with pytest.raises(ValueError, match="Ongoing"):
            complete(transaction(TransactionState.ONGOING), now_ms=NOW)
