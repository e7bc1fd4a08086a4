"""Budgets of failures: by address, by name, bounded, and refilled with time."""

import pytest

from core_broker.service.clock import ManualClock
from core_broker.web_access import failure_limits
from core_broker.web_access.failure_limits import FailureLimits


def fail(limits: FailureLimits, times: int, user: str = "alice", host: str = "10.0.0.1") -> None:
    for _ in range(times):
        assert limits.wait_seconds(user, host) == 0
        limits.add(user, host)


def test_an_address_has_to_wait_when_its_failures_are_used_up() -> None:
    limits = FailureLimits(ManualClock(), per_minute=6)
    for number in range(6):
        fail(limits, 1, user=f"user-{number}")
    assert limits.wait_seconds("another", "10.0.0.1") == 10
    assert limits.wait_seconds("another", "10.0.0.2") == 0


def test_a_name_has_to_wait_wherever_it_is_tried_from() -> None:
    limits = FailureLimits(ManualClock(), per_minute=6)
    for number in range(6):
        fail(limits, 1, host=f"10.0.0.{number}")
    assert limits.wait_seconds("alice", "10.0.1.1") == 10
    assert limits.wait_seconds("bob", "10.0.1.1") == 0


def test_the_budget_refills_with_time() -> None:
    clock = ManualClock()
    limits = FailureLimits(clock, per_minute=6)
    fail(limits, 6)
    clock.advance(4_000)
    assert limits.wait_seconds("alice", "10.0.0.1") == 6
    clock.advance(6_000)
    fail(limits, 1)


def test_what_was_no_failure_is_given_back() -> None:
    limits = FailureLimits(ManualClock(), per_minute=6)
    for _ in range(20):
        fail(limits, 1)
        limits.take_back("alice", "10.0.0.1")


@pytest.mark.parametrize(
    "one,other,is_same",
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("", "somewhere", False),
    ],
)
def test_addresses_of_one_customer_share_a_budget(one: str, other: str, is_same: bool) -> None:
    limits = FailureLimits(ManualClock(), per_minute=1)
    fail(limits, 1, user="a", host=one)
    assert bool(limits.wait_seconds("b", other)) is is_same


def test_the_number_of_budgets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_limits, "_BUDGETS_MAX", 10)
    limits = FailureLimits(ManualClock(), per_minute=6)
    for number in range(100):
        fail(limits, 1, user=f"user-{number}", host=f"10.0.0.{number}")
    assert len(limits._budgets) == 10
