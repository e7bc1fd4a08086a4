import pytest

from core_broker.cluster.controller.heartbeats import BrokerState, Sessions, next_state
from core_broker.cluster.metadata import BrokerImage
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from core_broker.service.settings import LONG_MAX

EPOCH = 10


def after(
    *,
    is_fenced: bool = False,
    is_stopping: bool = False,
    offset: int = EPOCH,
    want_fence: bool = False,
    want_shut_down: bool = False,
    leads: bool = False,
    is_handover_known: bool = True,
) -> BrokerState:
    broker = BrokerImage(1, EPOCH, b"", (), is_fenced=is_fenced, in_controlled_shutdown=is_stopping)
    request = BrokerHeartbeatRequest(1, EPOCH, offset, want_fence, want_shut_down)
    return next_state(broker, request, leads=lambda: leads, is_handover_known=lambda: is_handover_known)


def test_a_fenced_broker_is_unfenced_once_it_has_applied_its_own_registration() -> None:
    assert after(is_fenced=True, offset=EPOCH - 1) is BrokerState.FENCED
    assert after(is_fenced=True, want_fence=True) is BrokerState.FENCED
    assert after(is_fenced=True) is BrokerState.UNFENCED


def test_a_fenced_broker_may_stop_at_once() -> None:
    assert after(is_fenced=True, want_shut_down=True) is BrokerState.SHUTDOWN_NOW


def test_a_running_broker_stays_unfenced_or_is_fenced_as_it_wants() -> None:
    assert after() is BrokerState.UNFENCED
    assert after(want_fence=True) is BrokerState.FENCED
    assert after(want_fence=True, want_shut_down=True) is BrokerState.SHUTDOWN_NOW


def test_a_broker_that_leads_nothing_stops_at_once_and_another_hands_over_first() -> None:
    assert after(want_shut_down=True) is BrokerState.SHUTDOWN_NOW
    assert after(want_shut_down=True, leads=True) is BrokerState.CONTROLLED_SHUTDOWN


@pytest.mark.parametrize("leads,is_known,expected", [(True, True, False), (False, False, False), (False, True, True)])
def test_a_stopping_broker_waits_until_the_others_know_their_new_partitions(
    leads: bool, is_known: bool, expected: bool
) -> None:
    state = after(is_stopping=True, want_shut_down=True, leads=leads, is_handover_known=is_known)
    assert (state is BrokerState.SHUTDOWN_NOW) == expected


def test_partitions_are_not_searched_for_an_ordinary_heartbeat() -> None:
    def expensive() -> bool:
        raise AssertionError

    broker = BrokerImage(1, EPOCH, b"", (), is_fenced=False)
    request = BrokerHeartbeatRequest(1, EPOCH, EPOCH)
    assert next_state(broker, request, leads=expensive, is_handover_known=expensive) is BrokerState.UNFENCED


def test_a_session_ends_after_its_length_of_silence() -> None:
    sessions = Sessions(9.0)
    sessions.touch(1, EPOCH, 0.0)
    sessions.touch(2, EPOCH, 5.0)
    assert sessions.is_valid(1, EPOCH, 8.9)
    assert not sessions.is_valid(1, EPOCH + 1, 0.0)
    assert not sessions.is_valid(1, EPOCH, 9.0)
    assert sessions.expired(8.9) == []
    assert sessions.expired(9.0) == [1]
    assert sessions.expired(20.0) == [1, 2]


def test_sessions_begin_anew_after_a_pause_of_the_controller() -> None:
    sessions = Sessions(9.0)
    sessions.touch(1, EPOCH, 0.0)
    sessions.restart(100.0)
    assert sessions.expired(108.0) == []
    assert sessions.expired(109.0) == [1]


def test_the_lowest_offset_is_that_of_the_slowest_active_broker() -> None:
    sessions = Sessions(9.0)
    sessions.touch(1, EPOCH, 0.0, metadata_offset=50)
    sessions.touch(2, EPOCH, 0.0, metadata_offset=40)
    assert sessions.lowest_active_offset([1, 2]) == 40
    assert sessions.lowest_active_offset([1]) == 50
    assert sessions.lowest_active_offset([]) == LONG_MAX
    assert sessions.lowest_active_offset([1, 3]) == -1  # not heard of yet


def test_a_new_incarnation_starts_with_a_new_session() -> None:
    sessions = Sessions(9.0)
    sessions.touch(1, EPOCH, 0.0, metadata_offset=50)
    sessions.begin_shutdown(1, 60)
    assert sessions.shutdown_offset(1) == 60
    sessions.touch(1, EPOCH + 1, 1.0)
    assert (sessions.shutdown_offset(1), sessions.lowest_active_offset([1])) == (-1, -1)
