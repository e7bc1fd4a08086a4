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


def test_small_buffers_make_room_for_a_larger_one() -> None:
    memory = RequestMemory(10 * MIB)
    for _ in range(100):
        memory.give(memoryview(bytearray(SMALL_BYTES)))
    large = memory.take(MIB, MIB)
    memory.give(large)
    assert memory.take(SMALL_BYTES, MIB) is large


def test_large_requests_on_several_connections_use_their_buffers_again() -> None:
    memory = RequestMemory(100 * MIB)
    wanted = 900_000
    made: list[memoryview] = []  # kept, so that no two of them can be at the same address
    for _ in range(200):
        inboxes = [memory.take(2 * SMALL_BYTES, wanted) for _ in range(4)]
        for inbox in inboxes:
            # As a connection does: room for as much again as has arrived, until the request is whole.
            while len(inbox) < wanted:
                bigger = memory.take(min(wanted, 2 * len(inbox)), wanted)
                memory.give(inbox)
                if not any(bigger is one for one in made):
                    made.append(bigger)
                inbox = bigger
            memory.give(inbox)
    assert len(made) <= 4 * 3


def test_what_is_kept_is_bounded() -> None:
    memory = RequestMemory(1000 * MIB)
    buffers = [memory.take(8 * MIB, 8 * MIB) for _ in range(10)]
    for buffer in buffers:
        memory.give(buffer)
    taken = [memory.take(8 * MIB, 8 * MIB) for _ in range(10)]
    assert sum(any(one is buffer for buffer in buffers) for one in taken) == 4


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
