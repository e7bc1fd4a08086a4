"""What compaction keeps of a batch."""

import pytest

from core_broker.log.batch_filter import CleaningRound, TransactionTracker, Verdict, filter_batch
from core_broker.log.key_offsets import KeyOffsets
from core_broker.log.producer_state import ActiveProducer
from core_broker.log.transaction_index import AbortedTransaction
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import (
    BatchHeader,
    Record,
    build_batch,
    check_crc,
    end_transaction_marker,
    parse_header,
    read_records,
    stamp,
)

NOW_MS = 1_000_000
DELETE_RETENTION_MS = 500


def records(first_offset: int, *pairs: tuple[bytes, bytes | None]) -> list[Record]:
    return [
        Record(offset, 1000 + offset, key, value, (("h", b"1"),))
        for offset, (key, value) in enumerate(pairs, first_offset)
    ]


def read(batch: bytearray) -> tuple[BatchHeader, list[Record]]:
    header = parse_header(batch)
    assert check_crc(batch, header)
    return header, read_records(batch, header)


def keys_up_to(end_offset: int, **newest: int) -> KeyOffsets:
    keys = KeyOffsets(100)
    for key, offset in newest.items():
        keys.put(key.encode(), offset)
    keys.end_offset = end_offset
    return keys


def round_of(keys: KeyOffsets, *, now_ms: int = NOW_MS, last_offset: int = -1, **producers: int) -> CleaningRound:
    """`p7=12` means that producer 7 lives and its last data offset is 12; -1 means it has none."""
    known = {int(name[1:]): offset for name, offset in producers.items()}
    return CleaningRound(
        keys=keys,
        last_offset=last_offset,
        now_ms=now_ms,
        delete_retention_ms=DELETE_RETENTION_MS,
        producers={pid: ActiveProducer(pid, 0, 0, 0, 0, -1) for pid in known},
        last_data_offsets={pid: offset for pid, offset in known.items() if offset >= 0},
    )


def filtered(
    batch: bytearray, cleaning: CleaningRound, transactions: TransactionTracker | None = None
) -> tuple[Verdict, bytearray | None]:
    return filter_batch(parse_header(batch), memoryview(batch), cleaning, transactions or TransactionTracker())


def marker(offset: int, *, commit: bool, producer_id: int = 7) -> bytearray:
    batch = end_transaction_marker(producer_id, 0, commit=commit, coordinator_epoch=0, timestamp_ms=5)
    stamp(batch, parse_header(batch), base_offset=offset, leader_epoch=3)
    return batch


def test_batch_of_newest_values_is_kept_as_it_is() -> None:
    batch = build_batch(records(0, (b"a", b"1"), (b"b", b"1")))
    assert filtered(batch, round_of(keys_up_to(2, a=0, b=1))) == (Verdict.KEEP, None)


@pytest.mark.parametrize("codec", list(Codec))
def test_older_value_goes_and_everything_else_about_the_batch_stays(codec: Codec) -> None:
    batch = build_batch(
        records(10, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1")),
        base_offset=10,
        leader_epoch=4,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=30,
    )
    verdict, rewritten = filtered(batch, round_of(keys_up_to(99, a=12, b=11, c=50)))
    assert verdict is Verdict.REWRITE
    assert rewritten is not None
    header, left = read(rewritten)
    assert left == [record for record in records(10, (b"a", b"1"), (b"b", b"1"), (b"a", b"2")) if record.offset > 10]
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.codec) == (10, 13, 4, codec)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 30)
    assert not header.has_delete_horizon


def test_batch_without_newest_values_goes() -> None:
    assert filtered(build_batch(records(0, (b"a", b"1"))), round_of(keys_up_to(9, a=5))) == (Verdict.DROP, None)


def test_record_without_a_key_goes() -> None:
    batch = build_batch([Record(0, 0, None, b"1")])
    assert filtered(batch, round_of(keys_up_to(9))) == (Verdict.DROP, None)


def test_key_that_does_not_occur_in_the_dirty_part_stays() -> None:
    assert filtered(build_batch(records(0, (b"old", b"1"))), round_of(keys_up_to(9, a=5))) == (Verdict.KEEP, None)


def test_what_lies_above_the_part_read_stays() -> None:
    batch = build_batch(records(8, (b"a", b"1"), (b"a", b"2"), (b"a", None)), base_offset=8)
    verdict, rewritten = filtered(batch, round_of(keys_up_to(9, a=9)))
    assert verdict is Verdict.REWRITE
    assert rewritten is not None
    assert [record.offset for record in read(rewritten)[1]] == [9, 10]


def test_tombstone_is_stamped_first_and_goes_when_its_horizon_has_passed() -> None:
    keys = keys_up_to(9, a=0, b=1)
    verdict, stamped = filtered(build_batch(records(0, (b"a", None), (b"b", b"1"))), round_of(keys))
    assert verdict is Verdict.REWRITE
    assert stamped is not None
    header, left = read(stamped)
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW_MS + DELETE_RETENTION_MS
    assert left == records(0, (b"a", None), (b"b", b"1"))
    before = round_of(keys, now_ms=NOW_MS + DELETE_RETENTION_MS - 1)
    assert filtered(stamped, before) == (Verdict.KEEP, None)
    verdict, after = filtered(stamped, round_of(keys, now_ms=NOW_MS + DELETE_RETENTION_MS))
    assert verdict is Verdict.REWRITE
    assert after is not None
    assert read(after)[1] == records(0, (b"a", None), (b"b", b"1"))[1:]


def test_horizon_once_set_is_not_moved() -> None:
    _, stamped = filtered(build_batch(records(0, (b"a", None), (b"b", b"1"))), round_of(keys_up_to(9, a=0, b=1)))
    assert stamped is not None
    _, again = filtered(stamped, round_of(keys_up_to(9, a=0, b=5), now_ms=NOW_MS + 1))
    assert again is not None
    assert parse_header(again).base_timestamp == NOW_MS + DELETE_RETENTION_MS


def test_append_time_of_a_batch_stays() -> None:
    batch = build_batch(records(0, (b"a", b"1"), (b"b", b"2")), append_time_ms=77)
    _, rewritten = filtered(batch, round_of(keys_up_to(9, a=5, b=1)))
    assert rewritten is not None
    header, left = read(rewritten)
    assert header.uses_log_append_time
    assert [record.timestamp for record in left] == [77]


@pytest.mark.parametrize("is_alive", [True, False])
def test_emptied_batch_stays_while_it_holds_the_last_sequence_of_a_living_producer(is_alive: bool) -> None:
    batch = build_batch(records(4, (b"a", b"1")), base_offset=4, producer_id=7, producer_epoch=1, base_sequence=9)
    cleaning = round_of(keys_up_to(9, a=5), p7=4) if is_alive else round_of(keys_up_to(9, a=5))
    verdict, rewritten = filtered(batch, cleaning)
    if not is_alive:
        assert verdict is Verdict.DROP
        return
    assert rewritten is not None
    header, left = read(rewritten)
    assert left == []
    assert (header.last_offset, header.producer_id, header.last_sequence) == (4, 7, 9)
    assert filtered(rewritten, cleaning) == (Verdict.KEEP, None)
    assert filtered(rewritten, round_of(keys_up_to(9, a=5), p7=8)) == (Verdict.DROP, None)


def test_emptied_last_batch_of_the_round_stays() -> None:
    batch = build_batch(records(4, (b"a", b"1"), (b"a", b"2")), base_offset=4)
    verdict, rewritten = filtered(batch, round_of(keys_up_to(9, a=8), last_offset=5))
    assert verdict is Verdict.REWRITE
    assert rewritten is not None
    assert (parse_header(rewritten).base_offset, parse_header(rewritten).last_offset) == (4, 5)
    assert parse_header(rewritten).max_timestamp == parse_header(batch).max_timestamp


def test_records_of_an_aborted_transaction_go_and_its_index_entry_stays_until_they_have() -> None:
    aborted = AbortedTransaction(producer_id=7, first_offset=0, last_offset=1, last_stable_offset=2)
    data = build_batch(
        records(0, (b"a", b"1")), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    cleaning = round_of(keys_up_to(9, a=0))
    transactions = TransactionTracker()
    transactions.add_aborted([aborted])
    assert filtered(data, cleaning, transactions) == (Verdict.DROP, None)
    assert filtered(marker(1, commit=False), cleaning, transactions) == (Verdict.KEEP, None)
    assert transactions.take_still_aborted() == [aborted]
    second_pass = TransactionTracker()
    second_pass.add_aborted([aborted])
    assert filtered(marker(1, commit=False), cleaning, second_pass)[0] is Verdict.REWRITE
    assert second_pass.take_still_aborted() == []


@pytest.mark.parametrize("commit", [True, False])
def test_marker_goes_in_two_steps_once_its_transaction_is_empty(commit: bool) -> None:
    keys = keys_up_to(9)
    verdict, stamped = filtered(marker(3, commit=commit), round_of(keys))
    assert verdict is Verdict.REWRITE
    assert stamped is not None
    assert parse_header(stamped).base_timestamp == NOW_MS + DELETE_RETENTION_MS
    assert parse_header(stamped).is_control
    assert filtered(stamped, round_of(keys)) == (Verdict.KEEP, None)
    assert filtered(stamped, round_of(keys, now_ms=2 * NOW_MS)) == (Verdict.DROP, None)


def test_marker_stays_while_its_transaction_has_records() -> None:
    data = build_batch(
        records(0, (b"a", b"1")), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    transactions = TransactionTracker()
    cleaning = round_of(keys_up_to(9, a=0))
    assert filtered(data, cleaning, transactions) == (Verdict.KEEP, None)
    assert filtered(marker(1, commit=True), cleaning, transactions) == (Verdict.KEEP, None)


def test_spent_marker_that_tells_the_epoch_of_a_living_producer_stays_whole() -> None:
    _, stamped = filtered(marker(3, commit=True), round_of(keys_up_to(9)))
    assert stamped is not None
    assert filtered(stamped, round_of(keys_up_to(9), now_ms=2 * NOW_MS, p7=-1)) == (Verdict.KEEP, None)
    assert filtered(stamped, round_of(keys_up_to(9), now_ms=2 * NOW_MS, p7=8)) == (Verdict.DROP, None)


def test_control_record_that_ends_no_transaction_stays() -> None:
    batch = build_batch([Record(0, 0, b"\x00\x00\x00\x02", b"leader change")], is_control=True)
    assert filtered(batch, round_of(keys_up_to(9))) == (Verdict.KEEP, None)


def test_transaction_after_one_whose_marker_is_unreadable_is_not_taken_for_aborted() -> None:
    transactions = TransactionTracker()
    transactions.add_aborted([AbortedTransaction(7, 0, 5, 6)])
    first = parse_header(build_batch(records(0, (b"a", b"1")), producer_id=7, base_sequence=0, is_transactional=True))
    later = build_batch(records(6, (b"a", b"1")), base_offset=6, producer_id=7, base_sequence=1, is_transactional=True)
    assert transactions.is_aborted_data(first)
    assert not transactions.is_aborted_data(parse_header(later))
