"""Memory for requests that are still arriving."""

from core_broker.server.memory import SMALL_BYTES, RequestMemory

MIB = 1 << 20


def nobody() -> None:
    """Not called."""
    raise AssertionError


def test_a_buffer_given_back_is_used_again() -> None:
    memory = RequestMemory(10 * MIB)
    first = memory.take(MIB, MIB)
    memory.give(first)
    assert memory.take(10, MIB) is first


def test_a_length_sent_by_a_stranger_takes_no_memory() -> None:
    assert len(RequestMemory(10 * MIB).take(100, 100 * MIB)) == SMALL_BYTES


def test_what_does_not_fit_waits_its_turn_and_nobody_overtakes() -> None:
    memory = RequestMemory(4 * MIB)
    granted: list[str] = []
    assert memory.reserve(3 * MIB, nobody)
    assert not memory.reserve(2 * MIB, lambda: granted.append("second"))
    assert not memory.reserve(MIB, lambda: granted.append("third"))
    assert memory.is_short
    memory.release(3 * MIB)
    assert granted == ["second", "third"]
    assert memory.reserved == 3 * MIB
    assert not memory.is_short


def test_a_request_larger_than_the_budget_is_served_when_it_is_alone() -> None:
    memory = RequestMemory(MIB)
    granted: list[str] = []
    assert memory.reserve(100, nobody)
    assert not memory.reserve(4 * MIB, lambda: granted.append("large"))
    memory.release(100)
    assert granted == ["large"]


def test_a_connection_that_is_gone_holds_nobody_up() -> None:
    memory = RequestMemory(2 * MIB)
    granted: list[str] = []

    def gone() -> None:
        granted.append("gone")

    assert memory.reserve(MIB, nobody)
    assert not memory.reserve(2 * MIB, gone)
    assert not memory.reserve(MIB, lambda: granted.append("next"))
    memory.forget(gone)
    assert granted == ["next"]
