"""Fetch sessions (KIP-227)."""

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.fetch_sessions import FetchSessions
from core_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from core_broker.service.clock import ManualClock

VERSION = 12


def request(*partitions: int, session_id: int = 0, epoch: int = 0, forget: tuple[int, ...] = ()) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=p, fetch_offset=p * 10) for p in partitions])
        ],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_epoch_zero_opens_a_session_with_all_its_partitions(clock: ManualClock) -> None:
    session, entries, only_news = FetchSessions(clock, slots_max=10).resolve(request(0, 1), VERSION)
    assert session is not None
    assert session.session_id > 0
    assert [entry.partition for entry in entries] == [0, 1]
    assert not only_news


def test_an_incremental_request_adds_changes_and_forgets_partitions(clock: ManualClock) -> None:
    sessions = FetchSessions(clock, slots_max=10)
    session, _, _ = sessions.resolve(request(0, 1), VERSION)
    assert session is not None
    again, entries, only_news = sessions.resolve(
        request(2, session_id=session.session_id, epoch=1, forget=(0,)), VERSION
    )
    assert again is session
    assert [entry.partition for entry in entries] == [1, 2]
    assert only_news
    assert session.epoch == 2


@pytest.mark.parametrize(
    ("session_id", "epoch", "version", "code"),
    [
        (12345, 1, VERSION, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 7, VERSION, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 1, 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_request_that_does_not_fit_its_session_is_refused(
    clock: ManualClock, session_id: int | None, epoch: int, version: int, code: ErrorCode
) -> None:
    sessions = FetchSessions(clock, slots_max=10)
    session, _, _ = sessions.resolve(request(0), VERSION)
    assert session is not None
    with pytest.raises(BrokerError) as refused:
        sessions.resolve(request(session_id=session_id or session.session_id, epoch=epoch), version)
    assert refused.value.code == code


def test_the_final_epoch_closes_the_session(clock: ManualClock) -> None:
    sessions = FetchSessions(clock, slots_max=10)
    session, _, _ = sessions.resolve(request(0), VERSION)
    assert session is not None
    closed, entries, _ = sessions.resolve(request(0, session_id=session.session_id, epoch=-1), VERSION)
    assert closed is None
    assert len(entries) == 1
    assert len(sessions) == 0


def test_without_a_free_slot_the_fetch_is_served_without_a_session(clock: ManualClock) -> None:
    sessions = FetchSessions(clock, slots_max=1)
    sessions.resolve(request(0), VERSION)
    session, entries, _ = sessions.resolve(request(1), VERSION)
    assert session is None
    assert len(entries) == 1


def test_an_idle_session_gives_its_slot_to_a_new_one(clock: ManualClock) -> None:
    sessions = FetchSessions(clock, slots_max=1)
    first, _, _ = sessions.resolve(request(0), VERSION)
    clock.advance(121_000)
    second, _, _ = sessions.resolve(request(1), VERSION)
    assert first is not None
    assert second is not None
    assert len(sessions) == 1


def test_a_follower_takes_the_slot_of_a_consumer_but_not_of_another_follower(clock: ManualClock) -> None:
    sessions = FetchSessions(clock, slots_max=1)
    sessions.resolve(request(0), VERSION)
    follower, _, _ = sessions.resolve(request(1), VERSION, is_follower=True)
    assert follower is not None
    other, _, _ = sessions.resolve(request(2), VERSION, is_follower=True)
    assert other is None


def test_a_partition_that_got_data_goes_behind_the_others(clock: ManualClock) -> None:
    sessions = FetchSessions(clock, slots_max=1)
    session, entries, _ = sessions.resolve(request(0, 1), VERSION)
    assert session is not None
    session.move_to_end(entries[0])
    _, entries, _ = sessions.resolve(request(session_id=session.session_id, epoch=1), VERSION)
    assert [entry.partition for entry in entries] == [1, 0]
