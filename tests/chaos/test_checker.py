"""The checker finds each kind of violation, and none where there is none."""

from typing import Any

import pytest

from tests.chaos.checker import UNFINISHED, Event, Failover, Report, check
from tests.chaos.history import identify
from tests.chaos.topics import INPUT, OUTPUT, TRANSACTIONS

A, B, C = (identify(1, number) for number in range(3))
MEASURED = {"is_measured": True, "is_controller": False}
FIRST, SECOND = identify(7, 0), identify(7, 1)


def ok(*acks: tuple[int, int, int], topic: str = INPUT, at: float = 2.0) -> Event:
    return {"t": at, "op": "ok", "client": 1, "topic": topic, "acks": [list(ack) for ack in acks]}


def read(
    *records: tuple[int, ...],
    topic: str = INPUT,
    isolation: str = "uncommitted",
    reader: str = "member-1",
    final: bool = False,
) -> Event:
    """Records are partition, offset, record and, if there is one, transaction."""
    full = [[*record, 0][:4] for record in records]
    extra = {"final": True} if final else {}
    return {"t": 3.0, "op": "read", "reader": reader, "isolation": isolation, "topic": topic, "records": full, **extra}


def final(*records: tuple[int, ...], topic: str = INPUT) -> Event:
    return read(*records, topic=topic, final=True)


def final_committed(*records: tuple[int, ...], topic: str = INPUT) -> Event:
    return read(*records, topic=topic, final=True, isolation="committed")


def begin(transaction: int, *records: int, topic: str = TRANSACTIONS) -> Event:
    return {"t": 1.0, "op": "begin", "transaction": transaction, "topic": topic, "records": list(records)}


def outcome(transaction: int, op: str) -> Event:
    return {"t": 2.0, "op": op, "transaction": transaction}


def broken(report: Report) -> dict[str, int]:
    return {rule: violations.count for rule, violations in report.violations.items() if violations.count}


def test_a_sound_history_breaks_no_rule() -> None:
    report = check(
        [
            ok((A, 0, 0), (B, 0, 1)),
            begin(FIRST, A, B, topic=OUTPUT),
            outcome(FIRST, "aborted"),
            begin(SECOND, A, B, topic=OUTPUT),
            outcome(SECOND, "committed"),
            read((0, 0, A), (0, 1, B), reader="reader-1"),
            final((0, 0, A), (0, 1, B)),
            final_committed((0, 0, A), (0, 1, B)),
            final((0, 0, A, FIRST), (0, 1, B, FIRST), (0, 3, A, SECOND), (0, 4, B, SECOND), topic=OUTPUT),
            final_committed((0, 3, A, SECOND), (0, 4, B, SECOND), topic=OUTPUT),
        ]
    )
    assert broken(report) == {}
    assert (report.acknowledged, report.transformed) == (2, 2)
    assert report.transactions == {"aborted": 1, "committed": 1}


def test_an_acknowledged_record_that_is_missing_is_lost() -> None:
    assert broken(check([ok((A, 0, 0), (B, 0, 1)), final((0, 0, A))])) == {"S1": 1}


def test_an_acknowledged_record_that_another_one_replaced_is_lost() -> None:
    assert broken(check([ok((A, 0, 0)), final((0, 0, B))])) == {"S1": 1, "S3": 1}


def test_a_committed_transaction_of_which_nothing_is_left_is_lost() -> None:
    events = [begin(FIRST, A, B, C), outcome(FIRST, "committed"), final((0, 0, B), topic=INPUT)]
    assert broken(check(events)) == {"S1": 3}


def test_two_readers_that_see_different_records_at_an_offset() -> None:
    assert broken(check([read((0, 0, A)), final((0, 0, B))])) == {"S2": 1}


def test_a_value_whose_bytes_changed() -> None:
    event: dict[str, Any] = {
        "t": 1.0,
        "op": "damaged",
        "topic": INPUT,
        "partition": 0,
        "offset": 3,
        "reason": "damaged",
    }
    assert broken(check([event])) == {"S2": 1}


def test_an_offset_that_was_acknowledged_twice() -> None:
    found = broken(check([ok((A, 0, 0)), {**ok((B, 0, 0)), "client": 2}, final((0, 0, A), (0, 1, B))]))
    assert found["S3"] == 1


def test_acknowledged_offsets_that_do_not_rise() -> None:
    assert broken(check([ok((A, 0, 1), (B, 0, 0)), final((0, 0, B), (0, 1, A))])) == {"S3": 1, "S4": 1}


def test_an_acknowledged_record_at_another_offset() -> None:
    assert broken(check([ok((A, 0, 0)), final((0, 0, B), (0, 1, C), (0, 2, A))]))["S3"] == 1


def test_a_record_that_is_there_twice() -> None:
    assert broken(check([ok((A, 0, 0)), final((0, 0, A), (0, 1, A))])) == {"S4": 1}


def test_a_record_that_the_client_sent_again_under_a_new_epoch_is_not_blamed_on_the_cluster() -> None:
    report = check([final((0, 0, A), (0, 1, A))])
    report.excuse_resent(lambda _key, offset: (1000, offset))
    assert (report.count("S4"), report.resent) == (0, 1)


def test_records_of_a_producer_that_are_reordered() -> None:
    assert broken(check([final((0, 0, B), (0, 1, A))])) == {"S4": 1}


def test_a_rejected_record_that_is_visible() -> None:
    fail = {"t": 1.0, "op": "fail", "client": 1, "records": [A]}
    assert broken(check([fail, final((0, 0, A)), final_committed((0, 0, A))])) == {"S5": 1}


def test_an_aborted_record_that_a_reader_of_committed_records_saw() -> None:
    events = [
        begin(FIRST, A),
        outcome(FIRST, "aborted"),
        read((0, 0, A, FIRST), topic=TRANSACTIONS, isolation="committed"),
        final((0, 0, A, FIRST), topic=TRANSACTIONS),
    ]
    assert broken(check(events)) == {"S5": 1}


@pytest.mark.parametrize("how_it_ended", ["committed", "unknown"])
def test_a_transaction_of_which_only_a_part_is_visible(how_it_ended: str) -> None:
    events = [
        begin(FIRST, A, B, C),
        outcome(FIRST, how_it_ended) | ({"op": "restart"} if how_it_ended == "unknown" else {}),
        final((0, 0, A, FIRST), (1, 0, B, FIRST), (2, 0, C, FIRST), topic=TRANSACTIONS),
        final_committed((0, 0, A, FIRST), (1, 0, B, FIRST), topic=TRANSACTIONS),
    ]
    assert broken(check(events)) == {"S6": 1}


def test_a_transaction_with_an_unknown_end_may_be_visible_or_not() -> None:
    whole = [(0, 0, A, FIRST), (1, 0, B, FIRST)]
    logged = final(*whole, topic=TRANSACTIONS)
    assert broken(check([begin(FIRST, A, B), logged])) == {}
    assert broken(check([begin(FIRST, A, B), logged, final_committed(*whole, topic=TRANSACTIONS)])) == {}


def transformed(*outputs: tuple[int, ...]) -> dict[str, int]:
    inputs = [(0, 0, A), (0, 1, B)]
    begun = [begin(FIRST, A, B, topic=OUTPUT), begin(SECOND, A, topic=OUTPUT)]
    seen = [final(*outputs, topic=OUTPUT), final_committed(*outputs, topic=OUTPUT)]
    return broken(check([*begun, final(*inputs), *seen]))


def test_a_record_that_was_transformed_twice() -> None:
    assert transformed((0, 0, A, FIRST), (0, 1, B, FIRST), (0, 3, A, SECOND)) == {"S7": 1}


def test_a_record_that_was_not_transformed() -> None:
    assert transformed((0, 0, A, SECOND)) == {"S7": 1}


def watermark(end: int) -> Event:
    return {"t": 1.0, "op": "watermark", "reader": "w", "topic": INPUT, "partition": 0, "start": 0, "end": end}


def test_a_high_watermark_that_goes_back() -> None:
    assert broken(check([watermark(5), watermark(7), watermark(6)])) == {"S8": 1}


def test_a_record_that_was_read_and_vanished() -> None:
    assert broken(check([read((0, 0, A), (0, 1, B)), final((0, 0, A))])) == {"S8": 1}


def test_records_that_a_reader_skipped() -> None:
    events = [read((0, 0, A), (0, 2, C), reader="reader-1"), final((0, 0, A), (0, 1, B), (0, 2, C))]
    assert broken(check(events)) == {"S8": 1}


def test_a_reader_that_reads_an_offset_again() -> None:
    events = [read((0, 0, A), (0, 1, B), (0, 0, A), reader="reader-1"), final((0, 0, A), (0, 1, B))]
    assert broken(check(events)) == {"S8": 1}


def test_a_probe_that_failed() -> None:
    assert broken(check([{"t": 1.0, "op": "probe", "rule": "S11", "ok": False, "what": "acknowledged"}])) == {"S11": 1}


def unfinished(isolation: str, topic: str = INPUT, partition: int = 0) -> Event:
    return {"t": 4.0, "op": "unfinished", "isolation": isolation, "partitions": [[topic, partition]]}


def test_what_the_last_reader_did_not_come_to_is_neither_lost_nor_vanished() -> None:
    events = [ok((A, 0, 0), (B, 0, 1), (C, 0, 2)), read((0, 0, A), (0, 1, B), (0, 2, C)), final((0, 1, B))]
    assert broken(check(events)) == {"S1": 2, "S8": 2}
    assert broken(check([*events, unfinished("uncommitted")])) == {"S1": 1, "S8": 1, UNFINISHED: 1}


def test_a_last_read_of_committed_records_that_did_not_finish_tears_no_transactions() -> None:
    events = [
        begin(FIRST, A, B, topic=OUTPUT),
        outcome(FIRST, "committed"),
        begin(SECOND, C, topic=OUTPUT),
        outcome(SECOND, "committed"),
        final((0, 0, A), (0, 1, B), (0, 2, C)),
        final((0, 0, A, FIRST), (0, 1, B, FIRST), (0, 3, C, SECOND), topic=OUTPUT),
        final_committed((0, 0, A, FIRST), topic=OUTPUT),
    ]
    assert broken(check(events)) == {"S1": 1, "S6": 1, "S7": 2}
    assert broken(check([*events, unfinished("committed", OUTPUT)])) == {UNFINISHED: 1}


def committed(offset: int, at: float) -> Event:
    return {"t": at, "op": "committed offsets", "group": "g", "offsets": [[INPUT, 0, offset]]}


def fetched(offset: int, asked: float) -> Event:
    return {"t": asked + 1, "op": "fetched offsets", "group": "g", "asked": asked, "offsets": [[INPUT, 0, offset]]}


def test_a_committed_offset_that_is_lost() -> None:
    assert broken(check([committed(10, 1.0), committed(20, 2.0), fetched(10, 3.0)])) == {"S12": 1}


def test_an_offset_that_was_asked_for_before_the_commit_was_acknowledged_may_be_the_old_one() -> None:
    assert broken(check([committed(10, 1.0), committed(20, 2.0), fetched(10, 1.5)])) == {}


def test_a_partition_with_two_owners_in_a_generation() -> None:
    def assigned(member: str, generation: int) -> Event:
        names = {"group": "g", "member": member, "generation": generation}
        return {"t": 1.0, "op": "assigned", "partitions": [[INPUT, 0]], **names}

    assert broken(check([assigned("a", 1), assigned("b", 2)])) == {}
    assert broken(check([assigned("a", 1), assigned("b", 1)])) == {"S12": 1}


def test_failover_is_timed_from_the_kill_to_a_write_that_began_after_it() -> None:
    events: list[Event] = [
        {"t": 10.0, "op": "killed", "node": 1, "led": [[INPUT, 0]], **MEASURED},
        {"t": 9.0, "op": "invoke", "client": 1, "topic": INPUT, "first": A, "last": A},
        {"t": 11.0, "op": "invoke", "client": 1, "topic": INPUT, "first": B, "last": B},
        ok((A, 0, 0), at=10.5),
        ok((B, 0, 1), at=13.5),
        final((0, 0, A), (0, 1, B)),
    ]
    report = check(events)
    assert report.failovers == [Failover(3.5, "input-0", was_controller=False)]
    assert broken(report) == {}


def test_a_partition_that_takes_no_write_after_its_leader_was_killed() -> None:
    kill = {"t": 10.0, "op": "killed", "node": 1, "led": [[INPUT, 0]], **MEASURED}
    assert broken(check([kill])) == {"L1": 1}
