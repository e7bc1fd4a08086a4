"""Producer state: duplicates, gaps, epochs, transactions, and a naive model that must agree with it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.producer_state import (
    CompletedTransaction,
    DuplicateBatch,
    EndMarker,
    Origin,
    ProducerStates,
)
from core_broker.protocol.records import BatchHeader
from core_broker.service.clock import ManualClock

MAX_SEQUENCE = 2**31 - 1
DAY_MS = 86_400_000


def batch(
    sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, transactional: bool = False, at_ms: int = 0
) -> BatchHeader:
    return BatchHeader(
        position=0,
        base_offset=0,
        length=100,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=0x10 if transactional else 0,
        last_offset_delta=count - 1,
        base_timestamp=at_ms,
        max_timestamp=at_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def marker_batch(*, epoch: int = 0, producer_id: int = 7, at_ms: int = 0) -> BatchHeader:
    header = batch(-1, epoch=epoch, producer_id=producer_id, at_ms=at_ms)
    header.attributes = 0x30
    return header


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now_ms=DAY_MS)


@pytest.fixture
def states(clock: ManualClock) -> ProducerStates:
    return ProducerStates(clock, DAY_MS)


def write(states: ProducerStates, header: BatchHeader, offset: int, origin: Origin = Origin.CLIENT) -> None:
    assert states.check(header, origin=origin) is None
    states.update(header, offset)


def refusal(states: ProducerStates, header: BatchHeader, origin: Origin = Origin.CLIENT) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        states.check(header, origin=origin)
    return caught.value.code


def test_duplicate_batch_is_answered_with_its_original_offset(states: ProducerStates) -> None:
    write(states, batch(0, 3, at_ms=5), 100)
    write(states, batch(3, 2), 103)
    assert states.check(batch(0, 3), origin=Origin.CLIENT) == DuplicateBatch(100, 102, 5)


def test_sixth_last_batch_is_no_longer_recognised(states: ProducerStates) -> None:
    for number in range(6):
        write(states, batch(number), number)
    assert states.check(batch(1), origin=Origin.CLIENT) == DuplicateBatch(1, 1, 0)
    assert refusal(states, batch(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_gap_in_sequence_is_refused(states: ProducerStates) -> None:
    write(states, batch(0, 3), 0)
    assert refusal(states, batch(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batch_overlapping_a_written_one_is_refused(states: ProducerStates) -> None:
    write(states, batch(0, 3), 0)
    assert refusal(states, batch(0, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_wraps_to_zero_after_the_greatest_int(states: ProducerStates) -> None:
    write(states, batch(MAX_SEQUENCE - 1, 2), 0)
    write(states, batch(0), 2)


def test_batch_may_wrap_in_its_middle(states: ProducerStates) -> None:
    write(states, batch(MAX_SEQUENCE, 3), 0)
    write(states, batch(2), 3)
    assert states.check(batch(MAX_SEQUENCE, 3), origin=Origin.CLIENT) == DuplicateBatch(0, 2, 0)


def test_unknown_producer_may_begin_anywhere(states: ProducerStates) -> None:
    write(states, batch(42), 0)
    write(states, batch(43), 1)


def test_unknown_producer_of_transaction_v2_must_begin_at_zero(states: ProducerStates) -> None:
    with pytest.raises(BrokerError) as caught:
        states.check(batch(42), origin=Origin.CLIENT, needs_known_start=True)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(batch(0), origin=Origin.CLIENT, needs_known_start=True) is None


def test_older_epoch_is_fenced(states: ProducerStates) -> None:
    write(states, batch(0, epoch=3), 0)
    assert refusal(states, batch(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_new_epoch_must_begin_at_zero(states: ProducerStates) -> None:
    write(states, batch(0), 0)
    assert refusal(states, batch(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, batch(0, epoch=1), 1)
    write(states, batch(1, epoch=1), 2)


def test_duplicate_of_an_older_epoch_is_fenced_not_answered(states: ProducerStates) -> None:
    write(states, batch(0), 0)
    write(states, batch(0, epoch=1), 1)
    assert refusal(states, batch(0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_coordinator_appends_without_sequences_but_is_fenced_by_epoch(states: ProducerStates) -> None:
    write(states, batch(-1, epoch=1), 0, Origin.COORDINATOR)
    write(states, batch(-1, epoch=1), 1, Origin.COORDINATOR)
    assert refusal(states, batch(-1), Origin.COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_replicated_batch_is_taken_as_it_comes(states: ProducerStates) -> None:
    write(states, batch(0, epoch=5), 0, Origin.REPLICATION)
    write(states, batch(9, epoch=4), 1, Origin.REPLICATION)


def test_check_changes_nothing(states: ProducerStates) -> None:
    write(states, batch(0), 0)
    for _ in range(3):
        assert states.check(batch(1), origin=Origin.CLIENT) is None


def test_first_unstable_offset_is_the_oldest_open_transaction(states: ProducerStates) -> None:
    write(states, batch(0, producer_id=1, transactional=True), 10)
    write(states, batch(0, producer_id=2, transactional=True), 20)
    assert states.first_unstable_offset == 10
    states.complete_transaction(marker_batch(producer_id=1), EndMarker(commit=True, coordinator_epoch=0), 30)
    assert states.first_unstable_offset == 20
    states.complete_transaction(marker_batch(producer_id=2), EndMarker(commit=True, coordinator_epoch=0), 31)
    assert states.first_unstable_offset is None


def test_marker_completes_the_transaction_from_its_first_record(states: ProducerStates) -> None:
    write(states, batch(0, 2, transactional=True), 10)
    write(states, batch(2, transactional=True), 12)
    completed = states.complete_transaction(marker_batch(), EndMarker(commit=False, coordinator_epoch=0), 13)
    assert completed == CompletedTransaction(7, 10, 13, is_aborted=True)


def test_marker_of_an_empty_transaction_completes_nothing_but_moves_the_epoch(states: ProducerStates) -> None:
    assert states.complete_transaction(marker_batch(epoch=4), EndMarker(commit=True, coordinator_epoch=0), 0) is None
    assert refusal(states, batch(0, epoch=3, transactional=True)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_go_on_after_a_marker_of_the_same_epoch(states: ProducerStates) -> None:
    write(states, batch(0, 2, transactional=True), 0)
    states.complete_transaction(marker_batch(), EndMarker(commit=True, coordinator_epoch=0), 2)
    write(states, batch(2, transactional=True), 3)
    assert states.first_unstable_offset == 3


def test_sequences_begin_again_after_a_marker_that_bumps_the_epoch(states: ProducerStates) -> None:
    write(states, batch(0, 2, transactional=True), 0)
    states.complete_transaction(marker_batch(epoch=1), EndMarker(commit=True, coordinator_epoch=0), 2)
    assert refusal(states, batch(2, epoch=1, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(states, batch(0, epoch=1, transactional=True), 3)


def test_late_retry_after_a_bumping_marker_is_fenced(states: ProducerStates) -> None:
    write(states, batch(0, transactional=True), 0)
    states.complete_transaction(marker_batch(epoch=1), EndMarker(commit=False, coordinator_epoch=0), 1)
    assert refusal(states, batch(1, transactional=True)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_marker_of_a_replaced_coordinator_is_refused(states: ProducerStates) -> None:
    states.complete_transaction(marker_batch(), EndMarker(commit=True, coordinator_epoch=5), 0)
    with pytest.raises(BrokerError) as caught:
        states.check_marker(marker_batch(), EndMarker(commit=True, coordinator_epoch=4), origin=Origin.COORDINATOR)
    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_marker_of_an_older_producer_epoch_is_refused(states: ProducerStates) -> None:
    write(states, batch(0, epoch=2, transactional=True), 0)
    with pytest.raises(BrokerError) as caught:
        states.check_marker(marker_batch(epoch=1), EndMarker(commit=True, coordinator_epoch=0), origin=Origin.CLIENT)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_marker_of_transaction_v2_must_bump_the_epoch(states: ProducerStates) -> None:
    write(states, batch(0, epoch=2, transactional=True), 0)
    end = EndMarker(commit=True, coordinator_epoch=0)
    states.check_marker(marker_batch(epoch=2), end, origin=Origin.COORDINATOR)
    states.check_marker(marker_batch(epoch=3), end, origin=Origin.COORDINATOR, transaction_version=2)
    with pytest.raises(BrokerError) as caught:
        states.check_marker(marker_batch(epoch=2), end, origin=Origin.COORDINATOR, transaction_version=2)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_batch_outside_its_open_transaction_is_refused(states: ProducerStates) -> None:
    write(states, batch(0, transactional=True), 0)
    assert refusal(states, batch(1)) is ErrorCode.INVALID_TXN_STATE


def test_last_stable_offset_after_an_abort_is_the_next_open_transaction(states: ProducerStates) -> None:
    write(states, batch(0, producer_id=1, transactional=True), 10)
    write(states, batch(0, producer_id=2, transactional=True), 20)
    end = EndMarker(commit=False, coordinator_epoch=0)
    completed = states.complete_transaction(marker_batch(producer_id=1), end, 30)
    assert completed is not None
    assert states.last_stable_offset_if_completed(completed) == 20
    completed = states.complete_transaction(marker_batch(producer_id=2), end, 31)
    assert completed is not None
    assert states.last_stable_offset_if_completed(completed) == 32


def test_transaction_stays_unstable_until_its_marker_is_replicated(clock: ManualClock) -> None:
    states = ProducerStates(clock, DAY_MS, tracks_replication=True)
    write(states, batch(0, transactional=True), 10)
    states.complete_transaction(marker_batch(), EndMarker(commit=True, coordinator_epoch=0), 11)
    assert states.first_unstable_offset_below(11) == 10
    assert states.first_unstable_offset_below(12) is None


def test_has_ongoing_transaction_knows_producer_and_epoch(states: ProducerStates) -> None:
    assert not states.has_ongoing_transaction(7)
    write(states, batch(0, epoch=1, transactional=True), 0)
    assert states.has_ongoing_transaction(7)
    assert states.has_ongoing_transaction(7, 1)
    assert not states.has_ongoing_transaction(7, 2)
    states.complete_transaction(marker_batch(epoch=1), EndMarker(commit=True, coordinator_epoch=0), 1)
    assert not states.has_ongoing_transaction(7)


def test_marker_between_verification_and_append_voids_the_verification(states: ProducerStates) -> None:
    guard = states.begin_verification(7)
    assert states.is_verified(7, guard)
    states.complete_transaction(marker_batch(), EndMarker(commit=False, coordinator_epoch=0), 0)
    assert not states.is_verified(7, guard)


def test_silent_producer_expires_by_its_timestamp(states: ProducerStates) -> None:
    write(states, batch(0, at_ms=1000), 0)
    assert states.remove_expired(1000) == 0
    assert states.remove_expired(1000 + DAY_MS - 1) == 0
    assert states.remove_expired(1000 + DAY_MS) == 1
    write(states, batch(55), 1)


def test_producer_of_old_timestamps_is_kept_while_it_writes(states: ProducerStates) -> None:
    write(states, batch(0, at_ms=1), 0)
    assert states.remove_expired(10 * DAY_MS) == 0
    write(states, batch(1, at_ms=2), 1)
    assert states.remove_expired(10 * DAY_MS + 1) == 0


def test_producer_in_a_transaction_never_expires(states: ProducerStates) -> None:
    write(states, batch(0, transactional=True), 0)
    states.remove_expired(10 * DAY_MS)
    assert states.remove_expired(10 * DAY_MS) == 0


def test_active_producers_show_what_describe_producers_needs(states: ProducerStates) -> None:
    write(states, batch(0, 4, epoch=2, transactional=True, at_ms=9), 50)
    (producer,) = states.active_producers()
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 2, 3)
    assert (producer.last_timestamp, producer.coordinator_epoch, producer.transaction_start_offset) == (9, -1, 50)


def test_restored_state_goes_on_where_the_snapshot_was_taken(tmp_path: Path, clock: ManualClock) -> None:
    states = ProducerStates(clock, DAY_MS)
    write(states, batch(0, 3, at_ms=DAY_MS), 10)
    write(states, batch(0, producer_id=8, transactional=True, at_ms=DAY_MS), 13)
    states.snapshot(tmp_path, 14)
    restored, offset = ProducerStates.restore(tmp_path, 14, clock=clock, expiration_ms=DAY_MS)
    assert offset == 14
    assert sorted(restored.active_producers(), key=str) == sorted(states.active_producers(), key=str)
    assert restored.check(batch(0, 3), origin=Origin.CLIENT) == DuplicateBatch(10, 12, DAY_MS)
    assert restored.first_unstable_offset == 13
    write(restored, batch(3), 14)


def test_restore_leaves_expired_producers_out(tmp_path: Path, clock: ManualClock) -> None:
    states = ProducerStates(clock, DAY_MS)
    write(states, batch(0, at_ms=DAY_MS), 10)
    states.snapshot(tmp_path, 11)
    clock.advance(DAY_MS)
    restored, _ = ProducerStates.restore(tmp_path, 11, clock=clock, expiration_ms=DAY_MS)
    assert len(restored) == 0


class NaiveModel:
    """The rules of Kafka said as simply as possible: full history, no shortcuts."""

    def __init__(self) -> None:
        self.history: dict[int, list[tuple[int, int, int, int]]] = {}  # epoch, first, last, offset
        self.epoch: dict[int, int] = {}
        self.open: dict[int, int] = {}

    def verdict(self, header: BatchHeader) -> str:
        last_sequence = (header.base_sequence + header.last_offset_delta) % 2**31
        known = self.epoch.get(header.producer_id)
        if known is None:
            return "ok"
        mine = [entry for entry in self.history.get(header.producer_id, []) if entry[0] == known]
        if header.producer_epoch == known:
            for _, first, last, offset in mine[-5:]:
                if (first, last) == (header.base_sequence, last_sequence):
                    return f"duplicate {offset}"
        if header.producer_epoch < known:
            return "fenced"
        is_new_epoch = header.producer_epoch > known
        expected = 0 if is_new_epoch or not mine else (mine[-1][2] + 1) % 2**31
        if header.base_sequence != expected:
            return "gap"
        return "mixed" if header.producer_id in self.open and not header.attributes & 0x10 else "ok"

    def apply(self, header: BatchHeader, offset: int) -> None:
        producer_id = header.producer_id
        if self.epoch.get(producer_id) != header.producer_epoch:
            self.history[producer_id] = []
        self.epoch[producer_id] = header.producer_epoch
        last_sequence = (header.base_sequence + header.last_offset_delta) % 2**31
        entry = (header.producer_epoch, header.base_sequence, last_sequence, offset)
        self.history.setdefault(producer_id, []).append(entry)
        if header.attributes & 0x10:
            self.open.setdefault(producer_id, offset)

    def end(self, header: BatchHeader) -> int | None:
        if self.epoch.get(header.producer_id) != header.producer_epoch:
            self.history[header.producer_id] = []
        self.epoch[header.producer_id] = header.producer_epoch
        return self.open.pop(header.producer_id, None)


VERDICTS = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "fenced",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "gap",
    ErrorCode.INVALID_TXN_STATE: "mixed",
}


def verdict_of(states: ProducerStates, header: BatchHeader) -> str:
    try:
        duplicate = states.check(header, origin=Origin.CLIENT)
    except BrokerError as error:
        return VERDICTS[error.code]
    return "ok" if duplicate is None else f"duplicate {duplicate.first_offset}"


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "write", "retry", "marker", "restart"]),
        st.integers(0, 2),  # producer
        st.integers(0, 2),  # epoch, relative to the known one minus one
        st.integers(-2, 6),  # sequence, relative to the expected one; 0 and above 3 mean exactly it
        st.integers(1, 3),  # records
        st.booleans(),  # transactional
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps=steps, start=st.sampled_from([0, MAX_SEQUENCE - 4]))
def test_producer_states_agree_with_a_naive_model(
    steps: list[tuple[str, int, int, int, int, bool]], start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clock = ManualClock()
    states, model, offset = ProducerStates(clock, DAY_MS), NaiveModel(), 0
    directory = tmp_path_factory.mktemp("snapshots")
    written: dict[int, list[BatchHeader]] = {0: [], 1: [], 2: []}
    for action, producer_id, epoch_shift, sequence_shift, count, transactional in steps:
        epoch = max(0, model.epoch.get(producer_id, 0) + (epoch_shift - 1 if sequence_shift % 2 else 0))
        if action == "restart":
            states.snapshot(directory, offset)
            states, _ = ProducerStates.restore(directory, offset, clock=clock, expiration_ms=DAY_MS)
            model.history = {key: entries[-1:] for key, entries in model.history.items()}
            continue
        if action == "marker":
            if epoch >= model.epoch.get(producer_id, 0):
                header = marker_batch(producer_id=producer_id, epoch=epoch)
                completed = states.complete_transaction(header, EndMarker(commit=True, coordinator_epoch=0), offset)
                assert (completed.first_offset if completed else None) == model.end(header)
                offset += 1
            continue
        if action == "retry" and written[producer_id]:
            header = written[producer_id][sequence_shift % len(written[producer_id])]
        else:
            history = model.history.get(producer_id, [])
            expected = (history[-1][2] + 1) % 2**31 if history else start
            shift = 0 if sequence_shift > 3 else sequence_shift
            header = batch(
                max(0, min(MAX_SEQUENCE, expected + shift)),
                count,
                epoch=epoch,
                producer_id=producer_id,
                transactional=transactional,
            )
        verdict = model.verdict(header)
        assert verdict_of(states, header) == verdict
        if verdict == "ok":
            states.update(header, offset)
            model.apply(header, offset)
            written[producer_id].append(header)
            offset += count
        assert states.first_unstable_offset == min(model.open.values(), default=None)
