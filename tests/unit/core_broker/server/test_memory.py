"""Memory for requests that are still arriving."""

from core_broker.server.memory import SMALL_BYTES, RequestMemory

MIB = 1 << 20


def test_a_buffer_given_back_is_used_again() -> None:
    memory = RequestMemory(10 * MIB)
    first = memory.take(MIB, MIB)
    assert first is not None
    memory.give(first)
    assert memory.take(10, MIB) is first
    assert memory.in_use == len(first)


def test_a_length_sent_by_a_stranger_takes_no_memory() -> None:
    memory = RequestMemory(10 * MIB)
    buffer = memory.take(100, 100 * MIB)
    assert buffer is not None
    assert len(buffer) == SMALL_BYTES


def test_growth_beyond_the_limit_waits_until_memory_is_given_back() -> None:
    memory = RequestMemory(2 * MIB)
    resumed: list[str] = []
    first = memory.take(2 * MIB, 2 * MIB)
    assert first is not None
    assert memory.take(MIB, MIB) is None
    memory.wait(lambda: resumed.append("second"))
    memory.give(first)
    assert resumed == ["second"]
    assert memory.in_use == 0


def test_one_request_larger_than_the_limit_is_still_served_when_it_is_alone() -> None:
    memory = RequestMemory(MIB)
    assert memory.take(4 * MIB, 4 * MIB) is not None


def test_a_connection_that_is_gone_is_not_resumed() -> None:
    memory = RequestMemory(MIB)
    resumed: list[str] = []

    def resume() -> None:
        resumed.append("gone")

    buffer = memory.take(MIB, MIB)
    assert buffer is not None
    memory.wait(resume)
    memory.forget(resume)
    memory.give(buffer)
    assert resumed == []
