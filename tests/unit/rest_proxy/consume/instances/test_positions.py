from hypothesis import given
from hypothesis import strategies as st

from core_broker.client.records import IncomingRecord
from rest_proxy.consume.instances.positions import Positions
from rest_proxy.consume.instances.state import Position

A, B = ("a", 0), ("b", 1)


def record(place: tuple[str, int], offset: int) -> IncomingRecord:
    return IncomingRecord(
        topic=place[0], partition=place[1], offset=offset, timestamp_ms=0, timestamp_type="", key=None, value=None
    )


def test_answer_counts_when_the_client_comes_back() -> None:
    positions = Positions()
    positions.answer([record(A, 4), record(B, 7), record(A, 5)], now=10.0)
    assert positions.uncommitted == {}
    assert positions.to_save() == []
    positions.confirm_delivery(11.0)
    assert positions.uncommitted == {A: 6, B: 8}
    assert positions.to_save() == [Position("a", 0, 6), Position("b", 1, 8)]


def test_a_request_that_came_before_the_answer_does_not_confirm_it() -> None:
    positions = Positions()
    positions.answer([record(A, 4)], now=10.0)
    positions.confirm_delivery(9.0)
    assert positions.uncommitted == {}


def test_what_was_committed_is_not_committed_again() -> None:
    positions = Positions()
    positions.answer([record(A, 4)], now=1.0)
    positions.confirm_delivery(2.0)
    positions.mark_committed({A: 5})
    assert positions.uncommitted == {}


def test_commit_of_less_leaves_the_rest() -> None:
    positions = Positions()
    positions.answer([record(A, 4)], now=1.0)
    positions.confirm_delivery(2.0)
    positions.mark_committed({A: 3})
    assert positions.uncommitted == {A: 5}


def test_partition_begins_as_committed_else_where_the_client_stood() -> None:
    positions = Positions([Position("a", 0, 5)])
    assert positions.start(A, 3) == 3
    assert positions.start(A, None) == 5
    assert positions.start(B, None) is None


def test_partition_begins_where_the_client_went_whatever_is_committed() -> None:
    positions = Positions()
    positions.seek({A: 2})
    assert positions.start(A, 9) == 2
    assert Positions(positions.to_save()).start(A, 9) == 2
    positions.mark_committed({A: 2})
    assert positions.start(A, 9) == 9


def test_seek_takes_the_answer_before_back() -> None:
    positions = Positions()
    positions.answer([record(A, 4)], now=1.0)
    positions.seek({A: 1})
    positions.confirm_delivery(2.0)
    assert positions.uncommitted == {A: 1}


def test_nothing_is_committed_for_partitions_that_were_taken_away() -> None:
    positions = Positions()
    positions.answer([record(A, 4), record(B, 4)], now=1.0)
    positions.confirm_delivery(2.0)
    positions.answer([record(A, 5)], now=3.0)
    positions.revoke([A])
    positions.confirm_delivery(4.0)
    assert positions.uncommitted == {B: 5}
    assert positions.start(A, None) == 5


def test_where_the_client_stood_is_committed_after_the_group_has_given_the_partition_back() -> None:
    positions = Positions()
    positions.answer([record(A, 4), record(B, 7)], now=1.0)
    positions.confirm_delivery(2.0)
    positions.revoke([A, B])
    assert (positions.start(A, None), positions.start(B, 9)) == (5, 9)
    assert positions.uncommitted == {A: 5}


def test_where_the_client_stood_is_committed_after_a_restart() -> None:
    positions = Positions([Position("a", 0, 5)])
    assert positions.start(A, None) == 5
    assert positions.uncommitted == {A: 5}


def test_answers_are_written_down_once_they_are_out_of_our_hands() -> None:
    positions = Positions()
    positions.begin({A: 0})
    positions.answer([record(A, 0)], now=1.0)
    assert positions.to_save() == [Position("a", 0, 0)]
    assert positions.to_save(with_answered=True) == [Position("a", 0, 1)]


@given(st.lists(st.tuples(st.sampled_from(["poll", "lost", "commit", "crash"]), st.integers(1, 5))))
def test_nothing_is_skipped_whatever_happens(events: list[tuple[str, int]]) -> None:
    positions = Positions()
    positions.begin({A: 0})
    now, group, received, following = 0.0, None, 0, 0
    for event, count in events:
        now += 1
        if event == "crash":
            positions = Positions(positions.to_save())
            following = positions.start(A, group) or 0
            assert following <= received
            continue
        positions.confirm_delivery(now)
        if event == "commit":
            group = positions.uncommitted.get(A, group)
            positions.mark_committed(positions.uncommitted)
            continue
        page = [record(A, following + number) for number in range(count)]
        if event == "poll":  # Otherwise the client left, and nothing was handed over.
            positions.answer(page, now=now)
            received = max(received, following + count)
            following += count
