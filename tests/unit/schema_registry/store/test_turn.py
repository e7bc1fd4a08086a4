"""Turns: one at a time, in order."""

import threading

import pytest

from schema_registry.store.turn import Turns


def test_turns_come_in_the_order_of_asking() -> None:
    turns = Turns()
    order: list[int] = []
    threads: list[threading.Thread] = []

    def take(number: int) -> None:
        with turns.take(timeout_seconds=10):
            order.append(number)

    with turns.take(timeout_seconds=10):
        for number in range(8):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            while len(turns._waiting) <= number:  # until it stands in the queue
                threading.Event().wait(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_wait_ends() -> None:
    turns = Turns()
    with turns.take(timeout_seconds=1), pytest.raises(TimeoutError), turns.take(timeout_seconds=0.01):
        pytest.fail("two had the turn")


def test_who_gave_up_waiting_is_passed_over() -> None:
    turns = Turns()
    with turns.take(timeout_seconds=1), pytest.raises(TimeoutError), turns.take(timeout_seconds=0.01):
        pass
    with turns.take(timeout_seconds=0.01):
        pass


def test_a_failure_hands_the_turn_on() -> None:
    turns = Turns()
    with pytest.raises(KeyError), turns.take(timeout_seconds=1):
        raise KeyError
    with turns.take(timeout_seconds=0.01):
        pass
