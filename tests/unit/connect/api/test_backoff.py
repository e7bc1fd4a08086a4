"""Delays between attempts."""

from connect.api.backoff import Backoff


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3)
    assert [backoff.delay(attempt) for attempt in range(5)] == [0.5, 1, 2, 3, 3]


def test_attempts_may_go_on_for_years() -> None:
    assert Backoff(0.1, 30).delay(10**9) == 30
