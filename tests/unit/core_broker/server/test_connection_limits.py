"""How many connections are accepted, and how fast; time is handed in."""

import pytest

from core_broker.server.connection_limits import SLOT_SECONDS, ConnectionLimits
from core_broker.settings import BrokerSettings, Listener

START = 1000.0
HOST = "10.0.0.7"
OUTSIDE, INSIDE = "EXTERNAL", "INTERNAL"
LISTENERS = (Listener(OUTSIDE, "", 9092), Listener(INSIDE, "", 9093))


def limits(*listeners: str, overrides: dict[str, str] | None = None, **settings: object) -> ConnectionLimits:
    """The limits of a broker whose other brokers connect to INTERNAL."""
    return ConnectionLimits(changed(overrides, **settings), listeners or (OUTSIDE, INSIDE))


def changed(overrides: dict[str, str] | None = None, **settings: object) -> BrokerSettings:
    return BrokerSettings(
        listeners=LISTENERS,
        inter_broker_listener_name=INSIDE,
        listener_security_protocol_map=((OUTSIDE, "PLAINTEXT"), (INSIDE, "PLAINTEXT")),
        listener_overrides=tuple((overrides or {}).items()),
        **settings,  # type: ignore[arg-type]  # settings by name
    )


def open_many(found: ConnectionLimits, count: int, listener: str = OUTSIDE, now: float = START) -> None:
    for _ in range(count):
        assert found.wait_seconds(listener, now) == 0
        found.opened(listener, HOST, now)


def test_a_full_broker_lets_a_listener_wait_until_a_connection_is_closed() -> None:
    found = limits(max_connections=2)
    open_many(found, 2)
    assert found.wait_seconds(OUTSIDE, START) == SLOT_SECONDS
    found.closed(OUTSIDE, HOST)
    assert found.wait_seconds(OUTSIDE, START) == 0


def test_other_brokers_get_through_a_full_broker() -> None:
    found = limits(max_connections=2)
    open_many(found, 2)
    seen = [found.is_exceeded]
    open_many(found, 1, INSIDE)
    seen.append(found.is_exceeded)
    found.closed(OUTSIDE, HOST)
    assert [*seen, found.is_exceeded] == [False, True, False]


def test_other_brokers_have_no_privilege_on_a_listener_that_clients_use_too() -> None:
    found = limits(INSIDE, max_connections=1)
    open_many(found, 1, INSIDE)
    assert found.wait_seconds(INSIDE, START) == SLOT_SECONDS


def test_a_listener_has_a_limit_of_its_own() -> None:
    found = limits(overrides={"external.max.connections": "1", "internal.max.connections": "2"})
    open_many(found, 1, OUTSIDE)
    open_many(found, 2, INSIDE)
    assert found.wait_seconds(OUTSIDE, START) == found.wait_seconds(INSIDE, START) == SLOT_SECONDS


def test_limits_change_while_the_broker_runs() -> None:
    found = limits(max_connections=1)
    open_many(found, 1)
    assert found.wait_seconds(OUTSIDE, START) > 0
    found.configure(changed({"external.max.connections": "3"}))
    open_many(found, 2)
    assert found.wait_seconds(OUTSIDE, START) > 0


def test_new_connections_are_limited_over_a_window() -> None:
    found = limits(max_connection_creation_rate=2)
    open_many(found, 20)
    assert found.wait_seconds(OUTSIDE, START) == pytest.approx(0.5)
    assert found.wait_seconds(OUTSIDE, START + 0.5) == 0


def test_a_listener_waits_for_one_sample_at_most() -> None:
    found = limits(max_connection_creation_rate=2)
    open_many(found, 20)
    found.configure(changed(max_connection_creation_rate=1))
    assert found.wait_seconds(OUTSIDE, START) == 1
    found.configure(changed(max_connection_creation_rate=0))
    assert found.wait_seconds(OUTSIDE, START + 60) == 1


def test_the_pace_of_the_broker_does_not_hold_back_other_brokers_but_that_of_their_listener_does() -> None:
    found = limits(max_connection_creation_rate=1, overrides={"internal.max.connection.creation.rate": "2"})
    open_many(found, 10)
    assert found.wait_seconds(OUTSIDE, START) > 0
    open_many(found, 20, INSIDE)
    assert found.wait_seconds(INSIDE, START) > 0


def test_the_quota_of_an_address_counts_the_connections_that_need_not_wait() -> None:
    found = limits()
    assert [found.address_wait_seconds(HOST, 0.2, START) for _ in range(3)] == [0, 0, 1]
    assert found.address_wait_seconds("10.0.0.8", 0.2, START) == 0
    assert found.address_wait_seconds(HOST, 0.2, START + 11) == 0


def test_an_address_has_a_number_of_connections() -> None:
    found = limits(max_connections_per_ip=1, max_connections_per_ip_overrides=("10.0.0.8:2",))
    open_many(found, 1)
    assert not found.admits(HOST)
    assert found.admits("10.0.0.8")
    found.closed(OUTSIDE, HOST)
    assert found.admits(HOST)


@pytest.mark.parametrize("samples,seconds,burst", [(11, 1, 10), (3, 2, 4)])
def test_the_window_is_that_of_the_settings(samples: int, seconds: int, burst: int) -> None:
    found = limits(max_connection_creation_rate=1, quota_window_num=samples, quota_window_size_seconds=seconds)
    open_many(found, burst)
    assert found.wait_seconds(OUTSIDE, START) > 0
