"""FairLock: one holder at a time, in the order of asking."""

import threading

import pytest

from schema_registry.store.fair_lock import FairLock


def test_the_lock_is_granted_in_the_order_of_asking() -> None:
    lock = FairLock()
    order: list[int] = []
    threads: list[threading.Thread] = []

    def take(number: int) -> None:
        with lock.take(timeout_seconds=10):
            order.append(number)

    with lock.take(timeout_seconds=10):
        for number in range(8):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            while len(lock._waiting) <= number:  # until it is in the queue
                threading.Event().wait(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_wait_times_out() -> None:
    lock = FairLock()
    with lock.take(timeout_seconds=1), pytest.raises(TimeoutError), lock.take(timeout_seconds=0.01):
        pytest.fail("two threads held the lock")


def test_a_waiter_that_timed_out_is_skipped() -> None:
    lock = FairLock()
    with lock.take(timeout_seconds=1), pytest.raises(TimeoutError), lock.take(timeout_seconds=0.01):
        pass
    with lock.take(timeout_seconds=0.01):
        pass


def test_a_failure_in_the_block_releases_the_lock() -> None:
    lock = FairLock()
    with pytest.raises(KeyError), lock.take(timeout_seconds=1):
        raise KeyError
    with lock.take(timeout_seconds=0.01):
        pass
